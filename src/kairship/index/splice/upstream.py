"""The cluster's own watch, read in whole lines, and so that its first line can be examined before it is sent."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from kairship.kube import LARGEST_EVENT, KubeError, Stream

_ERROR = b'{"type":"ERROR"'


class UpstreamWatch:
    """Serves one reader at a time. Call `close` before the stream's context is left."""

    def __init__(self, stream: Stream, *, longest_silence: float) -> None:
        self.stream = stream
        self._longest_silence = longest_silence
        self._reading: asyncio.Task[bytes] | None = None

    async def first_is_error(self, *, timeout: float) -> bool:
        """Whether the watch begins with an ERROR, as far as is known within the timeout. No byte is consumed."""
        reading = self._read()
        await asyncio.wait((reading,), timeout=timeout)
        if not reading.done():
            return False
        try:
            begin = reading.result()
        except KubeError:
            return True
        # A stream that ends without any line cannot be trusted either.
        return not begin or begin.startswith(_ERROR)

    async def lines(self, ended: asyncio.Event) -> AsyncGenerator[bytes]:
        """Whole lines, several at a time, until the watch ends or breaks off, or `ended` is set.

        An incomplete line is dropped, and so is one that is too large: the client watches again from the last line
        that it got.
        """
        rest = bytearray()
        with self.stream.held.reply(LARGEST_EVENT) as held:
            async with _waiting(ended) as end:
                while True:
                    reading = self._read()
                    await asyncio.wait((reading, end), return_when=asyncio.FIRST_COMPLETED)
                    if ended.is_set():
                        return
                    try:
                        chunk = reading.result()
                        self._reading = None
                        complete, newline, begun = chunk.rpartition(b"\n")
                        if newline:
                            held.release()
                        held.add(len(begun))
                    except KubeError:
                        return
                    if not chunk:
                        return
                    if newline:
                        yield b"".join((rest, complete, newline))
                        rest.clear()
                    rest += begun

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait((self._reading,))
            if not self._reading.cancelled():
                self._reading.exception()

    def _read(self) -> "asyncio.Task[bytes]":
        if self._reading is None:
            self._reading = asyncio.create_task(self.stream.read(timeout=self._longest_silence))
        return self._reading


class _waiting:  # noqa: N801 - used as a function
    """A task that waits for an event, for as long as the block lasts."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    async def __aenter__(self) -> "asyncio.Task[object]":
        self._task: asyncio.Task[object] = asyncio.create_task(self._event.wait())
        return self._task

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
