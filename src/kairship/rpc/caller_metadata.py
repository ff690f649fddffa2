"""The caller of a request, passed on beside it from the entrance to the backend that answers.

A backend believes this metadata only from a process whose own token allows it to speak for callers.
"""

import msgspec

from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import Unauthenticated
from kairship.rpc.sight import Sight

METADATA = "kairship-asked-by-bin"


class CallerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend has to know of the caller and its request."""

    caller: Caller
    origin: str
    request_id: str
    sight: Sight = Sight()

    @classmethod
    def of(cls, call: Call) -> "CallerMetadata":
        return cls(caller=call.caller, origin=call.origin, request_id=call.request_id, sight=call.sight)

    def to_metadata(self) -> tuple[str, bytes]:
        return METADATA, _encoder.encode(self)

    @classmethod
    def from_metadata(cls, value: bytes) -> "CallerMetadata":
        try:
            return _decoder.decode(value)
        except msgspec.DecodeError:
            raise Unauthenticated(f"the metadata {METADATA} of the call cannot be decoded") from None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(CallerMetadata)
