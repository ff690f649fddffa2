"""Messages as JSON, as the published API has it.

Fields with zero values are written and messages that are not set are left out; enums go by name, 64-bit integers are
strings, bytes are base64.
"""

from typing import Any

from protobuf import Message, Registry

from kairship.gen.google.rpc import error_details_pb, status_pb

# What can be in the `details` of a google.rpc.Status, the one place where a message can be of any type.
_DETAILS = Registry(error_details_pb.desc(), status_pb.desc())


def write(message: Message[Any]) -> bytes:
    return message.to_json(always_emit_implicit=True, registry=_DETAILS).encode()
