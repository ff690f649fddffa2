"""Counts how well one kind is being followed, since its follower began."""

from dataclasses import dataclass


@dataclass(slots=True)
class KindCounters:
    lists: int = 0
    """How many times the kind was listed."""
    listed_at: float = 0.0
    """When the last list was complete, in seconds since 1970."""
    errors: int = 0
    last_error: str = ""
    last_error_at: float = 0.0
    lag: float = 0.0
    """Seconds from the arrival of the oldest change of the last batch until the batch was stored."""
    _waiting_since: float | None = None
    _lost_at: float | None = None

    @property
    def resyncs(self) -> int:
        """The number of lists after the first one."""
        return max(0, self.lists - 1)

    def arrived(self, now: float) -> None:
        """A change has arrived that is not stored yet."""
        if self._waiting_since is None:
            self._waiting_since = now

    def stored(self, now: float, *, more: bool) -> None:
        """All changes are stored, except those that have arrived meanwhile if there are `more`."""
        if self._waiting_since is not None:
            self.lag = now - self._waiting_since
        self._waiting_since = now if more else None

    def complete(self, now: float, wall: float) -> None:
        """A whole list is stored."""
        self.listed_at = wall
        self._lost_at = None
        self.stored(now, more=False)

    def failed(self, error: str, now: float, wall: float) -> None:
        self.errors += 1
        self.last_error, self.last_error_at = error, wall
        if self._lost_at is None:
            self._lost_at = now
        self._waiting_since = None

    def lost_for(self, now: float) -> float:
        """Seconds since contact was lost; 0 while there is contact, and before the first failure."""
        return 0.0 if self._lost_at is None else now - self._lost_at

    def current_lag(self, now: float) -> float:
        """The lag at this moment. It grows while there is no contact, and while a change waits."""
        since = self._lost_at if self._lost_at is not None else self._waiting_since
        return self.lag if since is None else max(self.lag, now - since)
