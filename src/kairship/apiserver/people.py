"""Everything that the entrance has from global management, or for it: who calls, and what they did.

It runs until after the last request, for an act that cannot be written down is not done; in the end `finish` ships what
is left.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protobuf import Message

from kairship.access import Ended, Identities, permissions
from kairship.apiserver.admission import CallerId
from kairship.apiserver.audit import Shipper, Spool, SpooledAudit
from kairship.apiserver.authorisation import Authorizer
from kairship.apiserver.credentials import Credentials
from kairship.apiserver.directory_follower import DirectoryFollower
from kairship.apiserver.limits import Limits
from kairship.apiserver.streams import Streams
from kairship.apiserver.token_uses import TokenUses
from kairship.process.starting import StartError
from kairship.reconcile import SystemClock
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import ApiError, Unauthenticated, Unavailable
from kairship.rpc.role_channel import RoleChannel

_OVER = Unauthenticated("the session, the token or the right that this was opened with has ended; sign in again")


class People:
    def __init__(self, channel: RoleChannel, *, audit_dir: Path, limits: Limits) -> None:
        """`channel` leads to global management. Raises `StartError` if the audit cannot be written there."""
        self._identities = Identities(SystemClock())
        self._follower = DirectoryFollower(channel, self._identities)
        self._uses = TokenUses(channel)
        try:
            spool = Spool(audit_dir)
        except OSError as error:
            raise StartError(f"the audit cannot be written to {audit_dir}: {error.strerror}") from None
        self._shipper = Shipper(spool, channel)
        self.spool = spool
        self.audit = SpooledAudit(spool)
        self.authenticator = Credentials(
            self._identities, look_up=self._follower.look_up, note_use=self._uses.note, limits=limits
        )

    def vouching_for(self, authorizer: Authorizer) -> Authorizer:
        """Asks it about callers who are known to be who they are, and still here."""
        return _KnownCallers(self, authorizer)

    def objection_to(self, caller: Caller, *, delicate: bool) -> ApiError | None:
        """Why a caller who was authenticated must not go on: they have gone since, or nobody can tell."""
        if self._identities.user(caller.id) is None or self._identities.has_ended(caller.session):
            return _OVER
        return self.uncertainty(delicate=delicate)

    def uncertainty(self, *, delicate: bool) -> ApiError | None:
        """Why nobody can tell who is who at this moment."""
        if self._identities.freshness.trusts(delicate=delicate):
            return None
        return Unavailable("who calls cannot be checked at this moment; nothing was done", retry_after=2.0)

    def guard(self, streams: Streams) -> None:
        """End streams with what they were opened with."""

        def end(ended: Ended) -> None:
            if ended.kind == "user":
                streams.end_of(CallerId(ended.id), _OVER)
            else:
                streams.end_with(ended.id, _OVER)

        self._identities.on_end(end)

    async def wait_known(self) -> None:
        """Returns when everybody is known."""
        await self._follower.wait_complete()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run())
            tasks.create_task(self._uses.run())
            tasks.create_task(self._shipper.run())

    async def finish(self) -> None:
        """When it does not run any more."""
        await self._shipper.finish()


class _KnownCallers:
    def __init__(self, people: People, authorizer: Authorizer) -> None:
        self._people = people
        self._authorizer = authorizer

    def authorize(self, call: Call, request: Message[Any]) -> None:
        if call.caller.id and (objection := self._people.uncertainty(delicate=_is_delicate(call))):
            raise objection
        self._authorizer.authorize(call, request)

    def objection(self, call: Call, request: Message[Any]) -> Callable[[], ApiError | None]:
        inner, caller, delicate = self._authorizer.objection(call, request), call.caller, _is_delicate(call)

        def ask() -> ApiError | None:
            return (self._people.objection_to(caller, delicate=delicate) if caller.id else None) or inner()

        return ask


def _is_delicate(call: Call) -> bool:
    permission = permissions().get(call.method.permission)
    return permission is None or permission.delicate
