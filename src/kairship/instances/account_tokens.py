"""Tokens of service accounts that end: asked for at the cluster that has the account."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec

from kairship.kube import BadReply, Client, kinds

SHORTEST = 600
"""API servers issue no token for fewer seconds."""


class AccountToken(msgspec.Struct, frozen=True):
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
    """For so many seconds, if the cluster does not decide otherwise. Without audiences: for its own API server."""
    spec: dict[str, Any] = {"expirationSeconds": max(seconds, SHORTEST)}
    if audiences:
        spec["audiences"] = list(audiences)
    reply = await client.create(
        kinds.SERVICE_ACCOUNTS,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        namespace=namespace,
        name=account,
        subresource="token",
        as_type=_TokenReply,
        timeout=timeout,
    )
    token, ends = reply.status.token, reply.status.expiration_timestamp
    if not token or ends is None:
        raise BadReply(f"{client.connection.server} has issued no token")
    return AccountToken(token, ends)
