"""Revocation: whether a caller who was authenticated is still valid, and whether that is known.

Global management is the authority on users, sessions and access tokens. Its directory is followed in memory
(`directory_follower`). While there is no contact with it, a revocation may have been missed: delicate requests are then
refused at once, and other reads after a grace period (`kairship.access.freshness`).
"""

from typing import Protocol

from kairship.access import Identities, Revocation
from kairship.apiserver.flowcontrol.fair_queue import CallerId
from kairship.apiserver.flowcontrol.streams import Streams
from kairship.rpc.calls import Caller
from kairship.rpc.errors import ApiError, Unauthenticated, Unavailable

RETRY_AFTER = 2.0

_REVOKED = Unauthenticated("the session, the token or the right that this was opened with has ended; sign in again")


class RevocationCheck(Protocol):
    def objection_to(self, caller: Caller, *, delicate: bool) -> ApiError | None:
        """Returns why a caller who was authenticated earlier must not go on; None if the caller may.

        Either the user or the session has ended, or it cannot be known whether they have.
        """
        ...

    def staleness(self, *, delicate: bool) -> ApiError | None:
        """Returns why revocations cannot be known at this moment; None while they are."""
        ...


class DirectoryRevocationCheck:
    """Checks callers against the directory of global management, in memory."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    def objection_to(self, caller: Caller, *, delicate: bool) -> ApiError | None:
        if self._identities.user(caller.id) is None or self._identities.is_revoked(caller.session):
            return _REVOKED
        return self.staleness(delicate=delicate)

    def staleness(self, *, delicate: bool) -> ApiError | None:
        if self._identities.freshness.suffices(delicate=delicate):
            return None
        return Unavailable(
            "the caller's identity cannot be checked at this moment; nothing was done, try again",
            retry_after=RETRY_AFTER,
        )


def end_streams_when_revoked(identities: Identities, streams: Streams) -> None:
    """Lets every stream end with the user, session or token that it was opened with."""

    def end(ended: Revocation) -> None:
        if ended.kind == "user":
            streams.end_of(CallerId(ended.id), _REVOKED)
        else:
            streams.end_with(ended.id, _REVOKED)

    identities.on_revocation(end)
