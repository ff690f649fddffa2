"""Credentials that can be renewed with nothing but themselves: tokens of ServiceAccounts that may request new ones.

A client certificate cannot be renewed so, nor can a token that is bound to a pod or a Secret. Users are warned before
such a credential expires.
"""

import datetime as dt

import msgspec

from kairship.instances.account_tokens import issue_token
from kairship.instances.credentials.claims import read_claims, timestamp
from kairship.kube import Client, Connection


class _Named(msgspec.Struct):
    name: str


class _Bound(msgspec.Struct):
    namespace: str
    serviceaccount: _Named
    pod: _Named | None = None
    secret: _Named | None = None


class _Claims(msgspec.Struct):
    kubernetes: _Bound = msgspec.field(name="kubernetes.io")
    exp: float
    iat: float
    aud: list[str] | str = msgspec.field(default_factory=list)


class OwnToken(msgspec.Struct, frozen=True):
    """A service account token, as its claims describe it."""

    namespace: str
    account: str
    audiences: tuple[str, ...]
    issued: dt.datetime
    ends: dt.datetime

    @property
    def due(self) -> dt.datetime:
        """The time to renew it: half of its life is left then for retries and repairs."""
        return self.issued + (self.ends - self.issued) / 2


def own_token(connection: Connection) -> OwnToken | None:
    """Returns None if the connection has another credential, or a token that is bound to a pod or a Secret."""
    if connection.client_cert is not None:
        return None
    claims = read_claims(connection.token, _Claims)
    if claims is None or claims.kubernetes.pod is not None or claims.kubernetes.secret is not None:
        return None
    issued, ends = timestamp(claims.iat), timestamp(claims.exp)
    if issued is None or ends is None or issued >= ends:
        return None
    audiences = (claims.aud,) if isinstance(claims.aud, str) else tuple(claims.aud)
    bound = claims.kubernetes
    return OwnToken(bound.namespace, bound.serviceaccount.name, audiences, issued, ends)


async def renew(client: Client, token: OwnToken, *, timeout: float) -> Connection:
    """Returns the connection of `client` with a new token, which is valid for as long as the old one was."""
    issued = await issue_token(
        client,
        namespace=token.namespace,
        account=token.account,
        seconds=int((token.ends - token.issued).total_seconds()),
        audiences=token.audiences,
        timeout=timeout,
    )
    return msgspec.structs.replace(client.connection, token=issued.token)
