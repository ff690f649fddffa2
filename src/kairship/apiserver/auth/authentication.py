"""How a request is authenticated: the protocol, and how a bearer token is taken out of a request."""

from typing import Protocol
from urllib.parse import unquote_plus

from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import InvalidArgument, Unauthenticated

LONGEST_TOKEN = 4096

_SECRETS = frozenset({"token", "access_token", "id_token", "refresh_token", "authorization", "api_key", "password"})


class SessionEnded(Unauthenticated):
    """The credential was genuine, and has expired or was revoked. This is no sign of an attack."""


class Authenticator(Protocol):
    async def authenticate(self, envelope: Envelope) -> Caller:
        """Raises `Unauthenticated` if the request has no credential, or none that is valid."""
        ...


def bearer_token(envelope: Envelope) -> str:
    scheme, _, token = envelope.headers.get("authorization", "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("the request has no token; send one as `Authorization: Bearer <token>`")
    if len(token) > LONGEST_TOKEN:
        raise Unauthenticated("the token is not valid; ask for a new one")
    return token


def refuse_secrets(query: str) -> None:
    """Refuses a query string with a credential: URLs end up in histories, and in the logs of every proxy on the way."""
    for parameter in query.split("&") if query else ():
        if unquote_plus(parameter.partition("=")[0]).lower().replace("-", "_") in _SECRETS:
            raise InvalidArgument("a token must not be sent in the URL; send it as `Authorization: Bearer <token>`")
