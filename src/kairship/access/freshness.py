"""Whether data in memory is recent enough to decide with.

It is while its source is connected. Without a connection a right may have been revoked unnoticed: delicate permissions
are refused at once, and other reads after a minute.
"""

from kairship.reconcile import Clock

GRACE = 60.0
"""Seconds for which reads go on without a connection."""


class Freshness:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._disconnected_at: float | None = None
        self._ever_connected = False

    def mark_connected(self) -> None:
        self._ever_connected = True
        self._disconnected_at = None

    def mark_disconnected(self) -> None:
        if self._disconnected_at is None:
            self._disconnected_at = self._clock.now()

    def suffices(self, *, delicate: bool) -> bool:
        """Whether a decision about a permission, delicate or not, may rest on the data."""
        if self._disconnected_at is None:
            return self._ever_connected
        return self._ever_connected and not delicate and self._clock.now() - self._disconnected_at < GRACE
