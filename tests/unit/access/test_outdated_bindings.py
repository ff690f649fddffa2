"""Bindings in memory that are behind what global management tells of them make decisions uncertain, and only those."""

import msgspec
import pytest
from support.bindings import bind, on
from support.reconcile import FakeClock

from kairship.access import Binding, Freshness, OutdatedBindings, Role
from kairship.access.freshness import DELIVERED_WITHIN, GRACE
from kairship.gen.kairship.internal.v1.directory_pb import BindingState


class Entrance:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.freshness = Freshness(self.clock)
        self.freshness.mark_connected()
        self.stored: dict[str, Binding] = {}
        self.outdated = OutdatedBindings(self.stored.get, self.freshness, self.clock)

    def store(self, sequence: int, *, revoked: bool = False, name: str = "b") -> None:
        made = bind("ann", Role.EDITOR, on("east"), name=name, revoked=revoked)
        self.stored[name] = msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, sequence=sequence))
        self.outdated.handle_change(name)

    def delete(self, name: str = "b") -> None:
        del self.stored[name]
        self.outdated.handle_change(name)

    def hear(self, sequence: int, name: str = "b") -> None:
        self.outdated.expect([BindingState(name=name, sequence=sequence)])

    @property
    def certain(self) -> tuple[bool, bool]:
        """Whether delicate requests are decided, and whether other reads are."""
        return self.freshness.suffices(delicate=True), self.freshness.suffices(delicate=False)


@pytest.fixture
def entrance() -> Entrance:
    return Entrance()


def test_a_replaced_right_is_trusted_for_as_long_as_a_delivery_may_take(entrance: Entrance) -> None:
    entrance.store(4)
    entrance.hear(4)
    entrance.clock.pass_time(1000)
    assert entrance.certain == (True, True)
    entrance.hear(6)
    entrance.clock.pass_time(DELIVERED_WITHIN - 0.1)
    entrance.hear(8)  # another change does not begin the time anew
    assert entrance.certain == (True, True)
    entrance.clock.pass_time(0.2)
    assert entrance.certain == (False, True)
    entrance.clock.pass_time(GRACE)
    assert entrance.certain == (False, False)
    entrance.store(6)
    assert entrance.certain == (False, False)
    entrance.store(8)
    assert entrance.certain == (True, True)


def test_the_oldest_of_several_counts(entrance: Entrance) -> None:
    for name in ("a", "b"):
        entrance.store(4, name=name)
        entrance.hear(6, name)
        entrance.clock.pass_time(DELIVERED_WITHIN - 1)
    assert entrance.certain == (False, True)
    entrance.store(6, name="a")
    assert entrance.certain == (True, True)
    entrance.clock.pass_time(2)
    assert entrance.certain == (False, True)
    entrance.delete("b")
    assert entrance.certain == (True, True)


def test_what_grants_nothing_makes_nothing_uncertain(entrance: Entrance) -> None:
    """A new grant that has not arrived, and a binding that was set aside after its former state was revoked."""
    entrance.hear(4, "new")
    entrance.store(4, name="unfit")
    entrance.hear(6, "unfit")
    entrance.store(5, name="unfit", revoked=True)
    entrance.clock.pass_time(1000)
    assert entrance.certain == (True, True)


def test_an_older_state_that_arrives_after_the_news_is_outdated(entrance: Entrance) -> None:
    entrance.hear(6)
    entrance.clock.pass_time(1000)
    entrance.store(4)
    assert entrance.certain == (True, True)
    entrance.clock.pass_time(DELIVERED_WITHIN + 1)
    assert entrance.certain == (False, True)


def test_contact_with_the_source_does_not_make_up_for_it(entrance: Entrance) -> None:
    entrance.store(4)
    entrance.hear(6)
    entrance.clock.pass_time(DELIVERED_WITHIN + 1)
    entrance.freshness.mark_connected()
    assert entrance.certain == (False, True)
    entrance.freshness.mark_disconnected()
    entrance.clock.pass_time(GRACE - 2)
    assert entrance.certain == (False, True)
    entrance.clock.pass_time(2)  # counted from the first of both
    assert entrance.certain == (False, False)
