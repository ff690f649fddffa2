"""What is remembered of who did what: the intent before the act, the outcome after it.

Only what the request is about is written down, never what it carries.
"""

from typing import Any, Protocol

import structlog
from protobuf import Message

from kairship.rpc.calls import Call
from kairship.rpc.errors import ApiError

log = structlog.get_logger("kairship.audit")


class Audit(Protocol):
    async def before(self, call: Call, request: Message[Any]) -> None:
        """The caller is about to do this. If it raises, nothing is done."""
        ...

    async def after(self, call: Call, request: Message[Any], error: ApiError | None) -> None:
        """How it ended. It has happened: nothing that is raised here changes that."""
        ...


class LoggedAudit:
    """Writes to the log what is more than reading."""

    async def before(self, call: Call, request: Message[Any]) -> None:
        if not _only_reads(call):
            log.info("intent", **_about(call, request))

    async def after(self, call: Call, request: Message[Any], error: ApiError | None) -> None:
        if not _only_reads(call):
            log.info("outcome", code=error.code.name if error else "OK", **_about(call, request))


def _only_reads(call: Call) -> bool:
    return call.method.permission.endswith(".get")


def _about(call: Call, request: Message[Any]) -> dict[str, str]:
    fields = {"instance": call.method.instance, "namespace": call.method.namespace, "name": "name"}
    about = {key: getattr(request, field, "") for key, field in fields.items() if field}
    return {
        "request_id": call.request_id,
        "caller": call.caller.id,
        "origin": call.origin,
        "operation": call.method.path,
        **{key: value for key, value in about.items() if value and isinstance(value, str)},
    }
