"""Whether data in memory is recent enough to decide with.

It is while its source is connected, and the data is not known to be behind for longer than a revocation may take.
Otherwise a right may have been revoked unnoticed: delicate permissions are refused at once, and other reads after a
minute.
"""

from kairship.reconcile import Clock

GRACE = 60.0
"""Seconds for which reads go on without a connection, or while the data is behind."""
DELIVERED_WITHIN = 4.0
"""Seconds for which data may be behind. A right ends within 5 s; up to one passes before an entrance knows that it is
behind."""


class Freshness:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._disconnected_at: float | None = None
        self._behind_since: float | None = None
        self._ever_connected = False

    def mark_connected(self) -> None:
        self._ever_connected = True
        self._disconnected_at = None

    def mark_disconnected(self) -> None:
        if self._disconnected_at is None:
            self._disconnected_at = self._clock.now()

    def mark_behind(self, since: float | None) -> None:
        """The data is known to be older than its origin's since this moment; None if it is not."""
        self._behind_since = since

    def suffices(self, *, delicate: bool) -> bool:
        """Whether a decision about a permission, delicate or not, may rest on the data."""
        since = self._uncertain_since()
        if since is None:
            return self._ever_connected
        return self._ever_connected and not delicate and self._clock.now() - since < GRACE

    def _uncertain_since(self) -> float | None:
        late = None if self._behind_since is None else self._behind_since + DELIVERED_WITHIN
        if late is None or self._clock.now() < late:
            return self._disconnected_at
        return late if self._disconnected_at is None else min(late, self._disconnected_at)
