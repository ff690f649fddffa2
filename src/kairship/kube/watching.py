"""The body of a watch: one JSON event per line, for as long as the server likes.

An event is taken apart in two steps. The envelope keeps the object as bytes; then the object is decoded as the caller
asked, and once more for its resourceVersion, which skips over everything else. Both passes run at memory speed;
nothing is decoded that nobody reads.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Generic, Literal, TypeVar

import msgspec

from .decoding import Described, decode
from .errors import BadReply, Disconnected
from .status import refusal

T = TypeVar("T")

_MAX_LINE = 64 * 1024 * 1024
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """A change of one object; or a bookmark, whose object has nothing but the revision that the watch has reached."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: T
    resource_version: str
    ends_initial_events: bool = False
    """On the bookmark after which a watch with `send_initial_events` has told everything that existed at its start."""


class _BookmarkMetadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMetadata


class _Envelope(msgspec.Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


_envelope = msgspec.json.Decoder(_Envelope)


async def lines(chunks: AsyncIterator[bytes], *, call: str, server: str) -> AsyncGenerator[bytes]:
    """The lines in a stream of chunks. A last line without an end was cut off: a lost connection, not an event."""
    begun: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            yield b"".join((*begun, line))
            begun.clear()
            size = 0
        if rest:
            begun.append(rest)
            size += len(rest)
            if size > _MAX_LINE:
                raise BadReply(f"{server} sent an event larger than {_MAX_LINE} bytes on {call}")
    if begun:
        raise Disconnected(f"{server} closed the connection in the middle of an event on {call}; watch again")


def parse(line: bytes, as_type: type[T], *, call: str, server: str) -> WatchEvent[T]:
    """One event. An ERROR event raises the same error as a reply with its status would."""
    try:
        envelope = _envelope.decode(line)
        if envelope.type == "ERROR":
            raise refusal(status=None, body=envelope.object, headers={}, call=call, server=server)
        return WatchEvent(
            type=envelope.type,
            object=decode(envelope.object, as_type),
            resource_version=decode(envelope.object, Described).metadata.resource_version,
            ends_initial_events=envelope.type == "BOOKMARK" and _ends_initial_events(envelope.object),
        )
    except msgspec.DecodeError as error:
        raise BadReply(f"{server} sent something that is no event on {call}: {error}") from error


def _ends_initial_events(bookmark: msgspec.Raw) -> bool:
    return _INITIAL_EVENTS_END in (decode(bookmark, _Bookmark).metadata.annotations or {})
