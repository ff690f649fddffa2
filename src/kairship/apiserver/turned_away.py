"""What a connection gets that comes when there are enough of them: one reply, and its end.

It is told so in HTTP, whatever it was about to ask, and costs next to nothing: nothing of what it sends is read.
"""

import asyncio
from typing import cast

from kairship.apiserver.replies import error_response
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import Unavailable

LINGER = 2.0
"""Seconds to take the reply. A connection that is closed while its request arrives would be reset before it is read."""

_ERROR = Unavailable(
    "this server has as many connections as it can have; close those that you do not use, or come again",
    retry_after=1.0,
)


class TurnedAway(asyncio.Protocol):
    def __init__(self) -> None:
        self._ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)  # uvloop's are none by their class
        stream.write(_reply())
        if stream.can_write_eof():
            stream.write_eof()
            self._ending = asyncio.get_running_loop().call_later(LINGER, stream.abort)
        else:  # TLS, which says goodbye and waits for the answer
            stream.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ending is not None:
            self._ending.cancel()


def _reply() -> bytes:
    response = error_response(_ERROR, Envelope.around({}, "").request_id)
    body = response.body
    assert isinstance(body, bytes)  # noqa: S101 - made of bytes
    headers = {**response.headers, "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {response.status} {response.reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body
