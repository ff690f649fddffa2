"""Who calls: what an entrance must know of it, and where it is shown. `credentials` says who it is."""

from typing import Protocol

from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import Unauthenticated

LONGEST_TOKEN = 4096


class SessionOver(Unauthenticated):
    """What was shown was genuine, and had its time: no attempt at anything."""


class Authenticator(Protocol):
    async def authenticate(self, envelope: Envelope) -> Caller:
        """Raises `Unauthenticated` if there is no credential, or none that is good."""
        ...


def bearer_token(envelope: Envelope) -> str:
    scheme, _, token = envelope.headers.get("authorization", "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("there is no token; send it as `Authorization: Bearer <token>`")
    if len(token) > LONGEST_TOKEN:
        raise Unauthenticated("the token is not valid; ask for a new one")
    return token
