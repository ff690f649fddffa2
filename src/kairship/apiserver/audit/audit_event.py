"""The records of one act: who did what to which object, never the content of the request."""

import time
import uuid
from typing import Any, TypeAlias

import msgspec
from protobuf import Message

from kairship.gen.kairship.internal.v1.audit_pb import Event
from kairship.rpc.calls import ANONYMOUS, Call, Caller
from kairship.wire import Method

UNKNOWN = 2
"""The google.rpc code of an unknown outcome: the process died during the act."""
_LONGEST = 256
# The fields by which requests name their object. The first one that a request has counts.
_NAMES = ("name", "id", "cluster", "user", "workspace", "folder", "provider")


class Intent(msgspec.Struct, frozen=True, kw_only=True, tag="intent"):
    id: str
    at: int
    action: str
    operation: str
    user_id: str
    user_name: str
    address: str
    request_id: str
    instance: str = ""
    namespace: str = ""
    object: str = ""

    def ended(self, code: int) -> Event:
        return Event(
            id=self.id,
            at=self.at,
            user_id=self.user_id,
            user_name=self.user_name,
            address=self.address,
            action=self.action,
            instance=self.instance,
            namespace=self.namespace,
            object=self.object,
            outcome=code,
            message=self.operation,
            request_id=self.request_id,
        )


class Outcome(msgspec.Struct, frozen=True, tag="outcome"):
    id: str
    code: int


Record: TypeAlias = Intent | Outcome

_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def to_line(record: Record) -> bytes:
    return msgspec.json.encode(record) + b"\n"


def from_line(line: bytes) -> Record | None:
    """Returns None for a line that a crash has cut off."""
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError:
        return None


def intent(
    method: Method, *, request_id: str, origin: str, caller: Caller = ANONYMOUS, request: Message[Any] | None = None
) -> Intent:
    return Intent(
        id=uuid.uuid4().hex,
        at=int(time.time()),
        action=method.permission,
        operation=f"{method.service}.{method.name}",
        user_id=caller.id,
        user_name=caller.name,
        address=origin,
        request_id=request_id,
        instance=_text(request, method.instance),
        namespace=_text(request, method.namespace),
        object=next((found for field in _NAMES if (found := _text(request, field))), ""),
    )


def intent_of(call: Call, request: Message[Any] | None) -> Intent:
    return intent(call.method, request_id=call.request_id, origin=call.origin, caller=call.caller, request=request)


def _text(request: Message[Any] | None, field: str | None) -> str:
    value = getattr(request, field, "") if field else ""
    return value[:_LONGEST] if isinstance(value, str) else ""
