"""Whether what is known of bindings can be trusted to be current.

While there is contact with the global cluster it can. Without contact somebody may have been unbound: what is delicate
is refused at once, and other reads after a minute.
"""

from kairship.reconcile import Clock

GRACE = 60.0
"""How long reads go on without contact, in seconds."""


class Freshness:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lost: float | None = None
        self._ever = False

    def in_contact(self) -> None:
        self._ever = True
        self._lost = None

    def lost(self) -> None:
        if self._lost is None:
            self._lost = self._clock.now()

    def trusts(self, *, delicate: bool) -> bool:
        if self._lost is None:
            return self._ever
        return self._ever and not delicate and self._clock.now() - self._lost < GRACE
