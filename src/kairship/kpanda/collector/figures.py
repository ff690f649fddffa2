"""How well one kind is being followed, in numbers that are counted since its follower began."""

from dataclasses import dataclass


@dataclass(slots=True)
class Figures:
    lists: int = 0
    """How many times everything was listed."""
    listed_at: float = 0.0
    """When the last list was complete, in seconds since 1970."""
    errors: int = 0
    last_error: str = ""
    last_error_at: float = 0.0
    lag: float = 0.0
    """Seconds from the arrival of the oldest of the last changes until all of them were stored."""
    _waiting_since: float | None = None
    _lost_at: float | None = None

    @property
    def resyncs(self) -> int:
        """The first list is none."""
        return max(0, self.lists - 1)

    def arrived(self, now: float) -> None:
        """A change has come that is not stored yet."""
        if self._waiting_since is None:
            self._waiting_since = now

    def stored(self, now: float, *, more: bool) -> None:
        """Everything up to this moment, unless there is `more` that has arrived meanwhile."""
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
        """Seconds since contact was lost; 0 while there is contact, or has not been any yet."""
        return 0.0 if self._lost_at is None else now - self._lost_at

    def behind(self, now: float) -> float:
        """The lag as it is now: without contact it grows, and so it does while a change waits."""
        since = self._lost_at if self._lost_at is not None else self._waiting_since
        return self.lag if since is None else max(self.lag, now - since)
