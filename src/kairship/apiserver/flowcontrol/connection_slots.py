"""Which connections may be open: strangers take nobody's place.

A connection is a stranger's until it has carried a request of an authenticated caller. Strangers have a share of all
slots, and one address has a smaller share of that; an IPv6 address counts by its /64, which one subscriber gets. When a
share is full, the oldest connection in it that has no running request makes room for the new one: a client that
connects in order to send a request sends it long before its turn to make room comes. So whoever opens connections and
leaves them idle takes them from nobody else.
"""

from collections.abc import Callable
from typing import Protocol

from kairship.apiserver.flowcontrol.limits import Limits
from kairship.process.client_network import client_network


class Held(Protocol):
    """A connection that takes a slot."""

    def is_idle(self) -> bool:
        """Whether no request is running on it."""

    def give_way(self) -> None:
        """Closes it at once."""


class ConnectionSlots:
    def __init__(self, limits: Limits, *, is_shared: Callable[[str], bool] = lambda _: False) -> None:
        """`is_shared` says of an address that many clients use it: that of a trusted proxy."""
        self._limits = limits
        self._is_shared = is_shared
        self._recognised: set[Held] = set()
        self._strangers: dict[Held, str] = {}  # by age, with the network of each
        self._by_network: dict[str, dict[Held, None]] = {}

    @property
    def count(self) -> int:
        return len(self._recognised) + len(self._strangers)

    def take(self, connection: Held, address: str) -> bool:
        """Takes a slot for a new connection. False if there is none, and no other connection can make room."""
        network = client_network(address)
        of_network = self._by_network.get(network, {})
        is_bounded = not self._is_shared(address)
        if is_bounded and len(of_network) >= self._limits.stranger_connections_per_address:
            if not self._make_room(of_network):
                return False
        elif (
            len(self._strangers) >= self._limits.stranger_connections or self.count >= self._limits.connections
        ) and not self._make_room(self._strangers):
            return False
        self._strangers[connection] = network
        self._by_network.setdefault(network, {})[connection] = None
        return True

    def recognise(self, connection: Held) -> None:
        """The connection has carried a request of an authenticated caller."""
        if connection in self._strangers:
            self._forget_stranger(connection)
            self._recognised.add(connection)

    def release(self, connection: Held) -> None:
        """Does nothing if the connection has no slot."""
        self._recognised.discard(connection)
        if connection in self._strangers:
            self._forget_stranger(connection)

    def _make_room(self, among: dict[Held, str] | dict[Held, None]) -> bool:
        oldest = next((connection for connection in among if connection.is_idle()), None)
        if oldest is None:
            return False
        self._forget_stranger(oldest)
        oldest.give_way()
        return True

    def _forget_stranger(self, connection: Held) -> None:
        network = self._strangers.pop(connection)
        remaining = self._by_network[network]
        del remaining[connection]
        if not remaining:
            del self._by_network[network]
