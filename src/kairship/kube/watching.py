"""Parses the body of a watch: one JSON event per line, until the server ends it.

An event is decoded in two steps. The envelope keeps the object as bytes; then the object is decoded to the caller's
type, and once more for its resourceVersion, which skips everything else. Both passes run at memory speed, and no field
is decoded that is not needed.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Generic, Literal, TypeVar

import msgspec

from kairship.kube.decoding import PartialObjectMetadata, decode
from kairship.kube.errors import BadReply, Disconnected
from kairship.kube.http.held_bytes import HeldBytes
from kairship.kube.status_errors import api_error

T = TypeVar("T")

LARGEST_EVENT = 16 << 20
"""Bytes of the largest event. etcd accepts objects of 1.5 MiB, unless its operator has raised that."""


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """A change of one object; or a bookmark, whose object has only the resourceVersion that the watch has reached."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: T
    resource_version: str


class _Envelope(msgspec.Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


_envelope = msgspec.json.Decoder(_Envelope)


async def lines(chunks: AsyncIterator[bytes], *, call: str, server: str, held: HeldBytes) -> AsyncGenerator[bytes]:
    """Yields the lines in a stream of chunks. A last line without an end means that the connection was lost.

    A line that is not ended yet counts in `held`.
    """
    partial: list[bytes] = []
    with held.reply(LARGEST_EVENT) as event:
        async for chunk in chunks:
            *complete, rest = chunk.split(b"\n")
            for line in complete:
                event.release()
                yield b"".join((*partial, line))
                partial.clear()
            if rest:
                event.add(len(rest))
                partial.append(rest)
    if partial:
        raise Disconnected(f"{server} closed the connection in the middle of an event on {call}; watch again")


def parse(line: bytes, as_type: type[T], *, call: str, server: str) -> WatchEvent[T]:
    """Parses one event. An ERROR event raises the same error as a reply with its status would."""
    try:
        envelope = _envelope.decode(line)
        if envelope.type == "ERROR":
            raise api_error(status=None, body=envelope.object, headers={}, call=call, server=server)
        return WatchEvent(
            type=envelope.type,
            object=decode(envelope.object, as_type),
            resource_version=decode(envelope.object, PartialObjectMetadata).metadata.resource_version,
        )
    except msgspec.DecodeError as error:
        raise BadReply(f"{server} sent something that is not a watch event on {call}: {error}") from error
