"""Sockets to an API server with TCP keepalive, which detect a peer that is gone without closing the connection.

A firewall that forgets a connection, or a machine that loses its power, closes no connection: a watch on it would stay
silent for ever, and its reader would believe that nothing changes. With keepalive the kernel probes the peer every few
seconds and reports the connection as lost when the peer does not answer.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from kairship.kube.http.addresses import AddressRule

_IDLE, _INTERVAL, _PROBES = 6, 3, 3
_DETECTED_AFTER = _IDLE + _INTERVAL * _PROBES  # seconds; the index is served at most this old
_CLOSED_SOON = 0.001

# The first option has one name on Linux and another on macOS.
_OPTIONS = (
    ("TCP_KEEPIDLE", _IDLE),
    ("TCP_KEEPALIVE", _IDLE),
    ("TCP_KEEPINTVL", _INTERVAL),
    ("TCP_KEEPCNT", _PROBES),
    # The same for data that was sent and not acknowledged: without it the kernel retries for a quarter of an hour.
    ("TCP_USER_TIMEOUT", _DETECTED_AFTER * 1000),
)


class SocketOpener:
    """Opens a socket for an entry of `getaddrinfo`. Raises `RefusedAddressError` if the rule refuses its address."""

    def __init__(self, addresses: AddressRule | None) -> None:
        self._addresses = addresses
        self._opened: WeakSet[socket.socket] = WeakSet()

    def __call__(self, found: tuple[Any, ...]) -> socket.socket:
        opened = self._addresses.open_socket(found) if self._addresses else socket.socket(*found[:3])
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _OPTIONS:
            option = getattr(socket, name, None)
            if option is not None:
                with suppress(OSError):  # a system may have the name without supporting the option
                    opened.setsockopt(socket.IPPROTO_TCP, option, value)
        self._opened.add(opened)
        return opened

    async def shut_down(self) -> None:
        """Ends the connections that are still open, and waits until their sockets are closed.

        TLS takes leave of the peer and waits for its answer, for half a minute if the peer is silent; the event loop
        may not live that long.
        """
        for each in self._still_open():
            with suppress(OSError):  # it is not connected yet, or no longer
                each.shutdown(socket.SHUT_RDWR)
        while self._still_open():  # noqa: ASYNC110 - the event loop closes them, and tells nobody
            await asyncio.sleep(_CLOSED_SOON)

    def _still_open(self) -> list[socket.socket]:
        return [each for each in self._opened if each.fileno() != -1]
