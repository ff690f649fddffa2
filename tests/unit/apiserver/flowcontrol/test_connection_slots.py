"""The slots of connections: shares of strangers and of addresses, and who makes room for whom."""

from kairship.apiserver.flowcontrol.connection_slots import ConnectionSlots
from kairship.apiserver.flowcontrol.limits import Limits

LIMITS = Limits(connections=6, stranger_connections=4, stranger_connections_per_address=2)


class Connection:
    def __init__(self) -> None:
        self.idle = True
        self.is_open = True

    def is_idle(self) -> bool:
        return self.idle

    def give_way(self) -> None:
        self.is_open = False


def opened(slots: ConnectionSlots, *addresses: str) -> list[Connection]:
    connections = [Connection() for _ in addresses]
    assert [slots.take(*each) for each in zip(connections, addresses, strict=True)] == [True] * len(addresses)
    return connections


def are_open(connections: list[Connection]) -> list[bool]:
    return [connection.is_open for connection in connections]


def test_one_address_displaces_its_own_connections_only() -> None:
    slots = ConnectionSlots(LIMITS)
    [other] = opened(slots, "192.0.2.9")
    assert are_open(opened(slots, *["192.0.2.1"] * 5)) == [False, False, False, True, True]
    assert other.is_open
    assert slots.count == 3


def test_many_addresses_displace_strangers_only() -> None:
    slots = ConnectionSlots(LIMITS)
    known = opened(slots, "192.0.2.9", "192.0.2.9")
    for connection in known:
        slots.recognise(connection)
    assert are_open(opened(slots, *(f"192.0.2.{number}" for number in range(10, 20)))) == [False] * 6 + [True] * 4
    assert are_open(known) == [True, True]
    assert slots.count == 6


def test_a_running_request_makes_no_room() -> None:
    slots = ConnectionSlots(LIMITS)
    first, second = opened(slots, "192.0.2.1", "192.0.2.1")
    first.idle = second.idle = False
    assert not slots.take(Connection(), "192.0.2.1")
    second.idle = True
    assert slots.take(Connection(), "192.0.2.1")
    assert (first.is_open, second.is_open) == (True, False)


def test_all_slots_may_belong_to_callers() -> None:
    slots = ConnectionSlots(LIMITS)
    for number in range(6):
        [connection] = opened(slots, f"192.0.2.{number}")
        slots.recognise(connection)
    late = Connection()
    assert not slots.take(late, "192.0.2.9")
    slots.release(late)
    slots.release(connection)
    assert slots.take(late, "192.0.2.9")


def test_a_trusted_proxy_is_not_one_client() -> None:
    slots = ConnectionSlots(LIMITS, is_shared=lambda address: address == "10.0.0.1")
    assert are_open(opened(slots, *["10.0.0.1"] * 4)) == [True] * 4
