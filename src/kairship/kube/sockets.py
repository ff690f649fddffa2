"""Sockets to an API server, which notice when the other side is gone without a word.

A firewall that forgets a connection, or a machine that loses its power, ends no connection: a watch on it would stay
silent for ever, and its reader would believe that nothing changes. The system asks the other side every few seconds
whether it is still there, and reports the connection as lost when it does not answer.
"""

import socket
from typing import Any

from .addresses import AddressRule

NOTICED_AFTER = 15
"""Seconds without an answer. Index reads are refused when the index is older than that."""
_IDLE, _INTERVAL, _PROBES = 6, 3, 3

# By the names that a system has for them: Linux, then macOS for the first one.
_OPTIONS = (
    ("TCP_KEEPIDLE", _IDLE),
    ("TCP_KEEPALIVE", _IDLE),
    ("TCP_KEEPINTVL", _INTERVAL),
    ("TCP_KEEPCNT", _PROBES),
    # The same for what was sent and not taken: without it the system goes on trying for a quarter of an hour.
    ("TCP_USER_TIMEOUT", NOTICED_AFTER * 1000),
)


class SocketOpener:
    """Called with an address as `getaddrinfo` returns it. Raises `RefusedAddressError` if the rule refuses it."""

    def __init__(self, addresses: AddressRule | None) -> None:
        self._addresses = addresses

    def __call__(self, found: tuple[Any, ...]) -> socket.socket:
        opened = self._addresses.open_socket(found) if self._addresses else socket.socket(*found[:3])
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _OPTIONS:
            if (option := getattr(socket, name, None)) is not None:
                opened.setsockopt(socket.IPPROTO_TCP, option, value)
        return opened
