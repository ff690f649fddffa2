"""HTTP sessions of tests, which leave no connection behind.

TLS takes leave of its peer before it closes a connection that was still in use, such as a watch. The event loop of a
test may end before that; the garbage collector would then find the open socket, in whatever test runs at that moment.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from kairship.kube.http.sockets import SocketOpener


@asynccontextmanager
async def http_session(base_url: str, *, context: ssl.SSLContext | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A request may take half a minute, unless it has a limit of its own."""
    opener = SocketOpener(None)
    connector = aiohttp.TCPConnector(ssl=context or True, socket_factory=opener)
    timeout = aiohttp.ClientTimeout(total=30)
    try:
        async with aiohttp.ClientSession(base_url, connector=connector, timeout=timeout) as session:
            yield session
    finally:
        await opener.shut_down()
