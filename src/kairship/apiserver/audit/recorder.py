"""Records API calls in the audit: every change, every read of secrets, and every refused attempt.

Global management records signing in itself, in the transaction in which it happens.
"""

from typing import Any, Protocol

from protobuf import Message

from kairship.access import permissions
from kairship.apiserver.audit.audit_event import Intent, Outcome, intent, intent_of, to_line
from kairship.apiserver.audit.spool import Spool, SpoolError
from kairship.apiserver.auth.authentication import SessionEnded
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.rpc.calls import Call, Envelope
from kairship.rpc.errors import ApiError, Code, Unavailable
from kairship.wire import Method

_REFUSALS = (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.NOT_FOUND)


class Audit(Protocol):
    async def before(self, call: Call, request: Message[Any]) -> None:
        """Records what the caller is about to do. If it raises, the call is not served."""
        ...

    async def after(self, call: Call, request: Message[Any], error: ApiError | None) -> None:
        """Records how the call ended. An error raised here does not change the outcome."""
        ...

    def refused(
        self, method: Method, envelope: Envelope, call: Call | None, request: Message[Any] | None, error: ApiError
    ) -> None:
        """Records a refused call. Without `call` the caller is unknown; without `request` the request was not read."""
        ...


class SpooledAudit:
    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._open: dict[int, str] = {}
        """The ids of intents by `id(call)` of the running calls, which are not hashable."""

    async def before(self, call: Call, request: Message[Any]) -> None:
        if not is_audited(call.method):
            return
        act = intent_of(call, request)
        await _write(self._spool, act)
        self._open[id(call)] = act.id

    async def after(self, call: Call, request: Message[Any], error: ApiError | None) -> None:
        intent_id = self._open.pop(id(call), None)
        if intent_id is not None:
            self._spool.add(to_line(Outcome(intent_id, int(error.code) if error else 0)))

    def refused(
        self, method: Method, envelope: Envelope, call: Call | None, request: Message[Any] | None, error: ApiError
    ) -> None:
        if error.code not in _REFUSALS or method.scope is Scope.ANYBODY or isinstance(error, SessionEnded):
            return
        if call is not None:
            act = intent_of(call, request)
        elif "authorization" in envelope.headers or "cookie" in envelope.headers:
            act = intent(method, request_id=envelope.request_id, origin=envelope.origin)
        else:
            return  # a request without a credential is no attempt
        self._spool.add(to_line(act) + to_line(Outcome(act.id, int(error.code))))


async def _write(spool: Spool, act: Intent) -> None:
    """Returns when the intent is on disk. If it raises, the act must not be done."""
    try:
        await spool.write(to_line(act))
    except SpoolError:
        raise not_written_down() from None


def not_written_down() -> Unavailable:
    return Unavailable(
        "the audit of this request cannot be written, so nothing was done; try again later",
        retry_after=5.0,
    )


def is_audited(method: Method) -> bool:
    if method.scope is Scope.ANYBODY:
        return False
    permission = permissions().get(method.permission)
    return not method.permission.endswith(".get") or (permission is not None and permission.delicate)
