"""Writes messages as JSON in the form of the published API.

Fields with zero values are written, and messages that are not set are left out. Enums are written by name, 64-bit
integers as strings, bytes in base64.
"""

from typing import Any

from protobuf import Message, Registry

from kairship.gen.google.rpc import error_details_pb, status_pb

# The messages that can be in the `details` of a google.rpc.Status, the only field of type Any.
_DETAILS = Registry(error_details_pb.desc(), status_pb.desc())


def write(message: Message[Any]) -> bytes:
    return message.to_json(always_emit_implicit=True, registry=_DETAILS).encode()
