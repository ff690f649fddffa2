"""Credentials that can be renewed with nothing but themselves: a ServiceAccount may ask for another token of its own.

A certificate cannot, nor can a token of which somebody else keeps the account: those are told about before they end.
"""

import datetime as dt

import msgspec

from kairship.instances.account_tokens import issue_token
from kairship.instances.credentials.claims import moment, read_claims
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
    """A token of a service account, as it describes itself."""

    namespace: str
    account: str
    audiences: tuple[str, ...]
    issued: dt.datetime
    ends: dt.datetime

    @property
    def due(self) -> dt.datetime:
        """When to renew it: half of its life is left then for whatever may go wrong."""
        return self.issued + (self.ends - self.issued) / 2


def own_token(connection: Connection) -> OwnToken | None:
    """None if the connection has another credential. One that lives no longer than a pod is not ours to prolong."""
    if connection.client_cert is not None:
        return None
    claims = read_claims(connection.token, _Claims)
    if claims is None or claims.kubernetes.pod is not None or claims.kubernetes.secret is not None:
        return None
    issued, ends = moment(claims.iat), moment(claims.exp)
    if issued is None or ends is None or issued >= ends:
        return None
    audiences = (claims.aud,) if isinstance(claims.aud, str) else tuple(claims.aud)
    bound = claims.kubernetes
    return OwnToken(bound.namespace, bound.serviceaccount.name, audiences, issued, ends)


async def renewed(client: Client, token: OwnToken, *, timeout: float) -> Connection:
    """The connection of `client` with another token, for as long as this one was for."""
    issued = await issue_token(
        client,
        namespace=token.namespace,
        account=token.account,
        seconds=int((token.ends - token.issued).total_seconds()),
        audiences=token.audiences,
        timeout=timeout,
    )
    return msgspec.structs.replace(client.connection, token=issued.token)
