"""A term of leadership, and how anybody can tell that it is over.

A term lasts until a moment on this machine's clock, which each renewal of the lease moves on. The moment lies well
before the one at which others may take the lease over, and it is compared with the clock at each use: a process that
was stopped for a while and wakes up finds its term over without having to hear of it from anyone.
"""

from kairship.reconcile.clock import Clock


class TermEnded(Exception):  # noqa: N818 - says what is the case
    """The caller does not lead any more and must not act."""


class LeaderTerm:
    """One reign of one process. Read in any thread; extended only by the thread that renews the lease.

    `number` grows from term to term, even if the lease was deleted in between: it is the revision at which the lease
    was taken. Those who are called by leaders refuse a number lower than one that they have seen.
    """

    def __init__(self, *, scope: str, number: int, until: float, clock: Clock) -> None:
        self.scope = scope
        self.number = number
        self._until = until
        self._ended = False
        self._clock = clock

    def __repr__(self) -> str:
        return f"LeaderTerm(scope={self.scope!r}, number={self.number}, remaining={self.remaining():.1f})"

    def remaining(self) -> float:
        """Seconds for which it certainly lasts; 0 when it is over."""
        return 0.0 if self._ended else max(0.0, self._until - self._clock.now())

    @property
    def valid(self) -> bool:
        return not self._ended and self._clock.now() < self._until

    def check(self) -> None:
        """Raises `TermEnded` when it is over. For calls that carry the term by other means than the client."""
        if not self.valid:
            raise TermEnded(f"term {self.number} of {self.scope} is over: this process does not lead any more")

    def extend(self, until: float) -> bool:
        """Whether it could be extended: a term that is over stays over."""
        if not self.valid:
            return False
        self._until = until
        return True

    def end(self) -> None:
        """For good, whatever the thread that renews does at this moment."""
        self._ended = True
