"""The reply to a connection beyond the limit: a fixed HTTP error, and the end of the connection.

It costs next to nothing, because nothing that the client sends is read.
"""

import asyncio
from typing import cast

from kairship.apiserver.http.replies import error_response
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import Unavailable

LINGER = 2.0
"""Seconds that the client has to read the reply. If the connection were closed while the request still arrives, it
would be reset before the client has read the reply."""

_ERROR = Unavailable(
    "this server has as many connections as it can have; close those that you do not use, or try again later",
    retry_after=1.0,
)


class OverloadReply(asyncio.Protocol):
    def __init__(self) -> None:
        self._ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)  # uvloop's transports do not inherit from it
        stream.write(_reply())
        if stream.can_write_eof():
            stream.write_eof()
            self._ending = asyncio.get_running_loop().call_later(LINGER, stream.abort)
        else:  # TLS, which sends close_notify and waits for the client's
            stream.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ending is not None:
            self._ending.cancel()


def _reply() -> bytes:
    response = error_response(_ERROR, Envelope.around({}, "").request_id)
    body = response.body
    assert isinstance(body, bytes)  # noqa: S101 - `error_response` gives bytes
    headers = {**response.headers, "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {response.status} {response.reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body
