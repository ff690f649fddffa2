"""The bindings in memory that global management has replaced or revoked, as its directory says.

Bindings are delivered by a webhook and stored in the global cluster. A delivery that is lost, switched off or led
elsewhere shows in neither: everything answers, and a revoked right goes on. So the directory, which every worker
follows anyway, tells the sequence of every binding. A right in memory with a lower sequence is outdated.

A binding that grants nothing here is never outdated, whatever its sequence: a grant that has not arrived harms nobody,
and of a binding that can never be stored (`delivery.binding_store`) the former state was revoked.
"""

from collections.abc import Callable, Iterable

from kairship.access.bindings import Binding
from kairship.access.freshness import Freshness
from kairship.gen.kairship.internal.v1.directory_pb import BindingState
from kairship.reconcile import Clock


class OutdatedBindings:
    """Marks the bindings as behind in `Freshness` while any of them is outdated. Everything runs in one event loop."""

    def __init__(self, stored: Callable[[str], Binding | None], freshness: Freshness, clock: Clock) -> None:
        """`stored` returns a binding as it is in memory."""
        self._stored = stored
        self._freshness = freshness
        self._clock = clock
        self._expected: dict[str, int] = {}
        """The sequences that the bindings in memory have not reached, by name."""
        self._outdated_since: dict[str, float] = {}
        """The outdated bindings, the first to become so at the front."""

    def expect(self, states: Iterable[BindingState]) -> None:
        """The directory has told how far these bindings have come."""
        for state in states:
            self._expected[state.name] = max(state.sequence, self._expected.get(state.name, 0))
            self._compare(state.name)
        self._mark()

    def handle_change(self, name: str) -> None:
        """A binding in memory has changed."""
        if name in self._expected:
            self._compare(name)
            self._mark()

    def _compare(self, name: str) -> None:
        stored = self._stored(name)
        if stored is not None and stored.spec.sequence >= self._expected[name]:
            del self._expected[name]
            self._outdated_since.pop(name, None)
        elif stored is None or stored.grant_scope is None:
            self._outdated_since.pop(name, None)
        else:
            self._outdated_since.setdefault(name, self._clock.now())

    def _mark(self) -> None:
        self._freshness.mark_behind(next(iter(self._outdated_since.values()), None))
