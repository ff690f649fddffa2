"""Issues tokens of service accounts that expire, by the TokenRequest API of the cluster that has the account."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec

from kairship.kube import BadReply, Client, kinds

MIN_SECONDS = 600
"""API servers issue no token with a shorter life, in seconds."""


class AccountToken(msgspec.Struct, frozen=True):
    """A token and when it expires. The representation does not show the token."""

    token: str
    ends: dt.datetime

    def __repr__(self) -> str:
        return f"AccountToken(ends={self.ends})"


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: dt.datetime | None = None

    def __repr__(self) -> str:
        return f"_Status(expiration_timestamp={self.expiration_timestamp})"


class _TokenReply(msgspec.Struct):
    status: _Status


async def issue_token(
    client: Client, *, namespace: str, account: str, seconds: int, audiences: Sequence[str] = (), timeout: float
) -> AccountToken:
    """Issues a token for `seconds`, unless the cluster decides otherwise.

    Without `audiences` the token is for the API server of the cluster itself.
    """
    spec: dict[str, Any] = {"expirationSeconds": max(seconds, MIN_SECONDS)}
    if audiences:
        spec["audiences"] = list(audiences)
    reply = await client.typed(_TokenReply).create(
        kinds.SERVICE_ACCOUNTS,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        namespace=namespace,
        name=account,
        subresource="token",
        timeout=timeout,
    )
    token, ends = reply.status.token, reply.status.expiration_timestamp
    if not token or ends is None:
        raise BadReply(f"{client.connection.server} answered a TokenRequest without a token")
    return AccountToken(token, ends)
