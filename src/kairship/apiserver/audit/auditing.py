"""What the chain tells of every call, and which of it is worth remembering.

Everything that changes something, every read of what is secret, and every attempt that was refused. Signing in is
written down by global management itself, in the transaction in which it happens.
"""

from typing import Any, Protocol

from protobuf import Message

from kairship.access import permissions
from kairship.apiserver.audit.events import Intent, Outcome, intent, intent_of, to_line
from kairship.apiserver.audit.spool import Spool, SpoolError
from kairship.apiserver.authentication import SessionOver
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.rpc.calls import Call, Envelope
from kairship.rpc.errors import ApiError, Code, Unavailable
from kairship.wire import Method

_REFUSALS = (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.NOT_FOUND)


class Audit(Protocol):
    async def before(self, call: Call, request: Message[Any]) -> None:
        """The caller is about to do this. If it raises, nothing is done."""
        ...

    async def after(self, call: Call, request: Message[Any], error: ApiError | None) -> None:
        """How it ended. It has happened: nothing that is raised here changes that."""
        ...

    def refused(
        self, method: Method, envelope: Envelope, call: Call | None, request: Message[Any] | None, error: ApiError
    ) -> None:
        """It was not even begun. Without a call nobody knows who it was, and the request may not have been read."""
        ...


class SpooledAudit:
    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._begun: dict[int, str] = {}
        """The ids of intents by the calls that run, which are no keys themselves."""

    async def before(self, call: Call, request: Message[Any]) -> None:
        if not is_remembered(call.method):
            return
        meant = intent_of(call, request)
        await remember(self._spool, meant)
        self._begun[id(call)] = meant.id

    async def after(self, call: Call, request: Message[Any], error: ApiError | None) -> None:
        begun = self._begun.pop(id(call), None)
        if begun is not None:
            self._spool.add(to_line(Outcome(begun, int(error.code) if error else 0)))

    def refused(
        self, method: Method, envelope: Envelope, call: Call | None, request: Message[Any] | None, error: ApiError
    ) -> None:
        if error.code not in _REFUSALS or method.scope is Scope.ANYBODY or isinstance(error, SessionOver):
            return
        if call is not None:
            meant = intent_of(call, request)
        elif "authorization" in envelope.headers or "cookie" in envelope.headers:
            meant = intent(method, request_id=envelope.request_id, origin=envelope.origin)
        else:
            return  # whoever shows nothing has attempted nothing
        self._spool.add(to_line(meant) + to_line(Outcome(meant.id, int(error.code))))


async def remember(spool: Spool, meant: Intent) -> None:
    """Returns when it is on the disk. If it raises, nothing may be done."""
    try:
        await spool.write(to_line(meant))
    except SpoolError:
        raise not_written_down() from None


def not_written_down() -> Unavailable:
    return Unavailable(
        "what you are about to do cannot be written down, so it was not done; try again later", retry_after=5.0
    )


def is_remembered(method: Method) -> bool:
    if method.scope is Scope.ANYBODY:
        return False
    permission = permissions().get(method.permission)
    return not method.permission.endswith(".get") or (permission is not None and permission.delicate)
