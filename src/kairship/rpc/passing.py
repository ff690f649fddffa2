"""Who asks, passed on from the entrance to the role that answers, beside the request.

Only the word of a process whose own token allows it is taken for a person.
"""

import msgspec

from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import Unauthenticated
from kairship.rpc.sight import Sight

METADATA = "kairship-asked-by-bin"


class AskedBy(msgspec.Struct, frozen=True, kw_only=True):
    caller: Caller
    origin: str
    request_id: str
    sight: Sight = Sight()

    @classmethod
    def of(cls, call: Call) -> "AskedBy":
        return cls(caller=call.caller, origin=call.origin, request_id=call.request_id, sight=call.sight)

    def to_metadata(self) -> tuple[str, bytes]:
        return METADATA, _encoder.encode(self)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AskedBy)


def asked_by(metadata: bytes) -> AskedBy:
    try:
        return _decoder.decode(metadata)
    except msgspec.DecodeError:
        raise Unauthenticated("the call does not say properly for whom it is made") from None
