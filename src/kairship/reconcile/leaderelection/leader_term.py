"""A term of leadership.

A term lasts until a deadline on this machine's clock, which each renewal of the lease extends. The deadline lies well
before the moment at which other candidates may take the lease, and it is compared with the clock at each use: a process
that was suspended for a while sees that its term is over without any message.
"""

from kairship.reconcile.clock import Clock


class TermEnded(Exception):  # noqa: N818 - says what is the case
    """This process no longer leads and must not act."""


class LeaderTerm:
    """One term of one process. Any thread may read it; only the thread that renews the lease extends it.

    `number` grows from term to term, even if the lease was deleted in between: it is the revision at which the lease
    was taken. It is a fencing token: servers that leaders call refuse a number lower than one that they have seen.
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
        """For how many seconds the term certainly lasts; 0 when it is over."""
        return 0.0 if self._ended else max(0.0, self._until - self._clock.now())

    @property
    def valid(self) -> bool:
        return not self._ended and self._clock.now() < self._until

    def check(self) -> None:
        """Raises `TermEnded` when the term is over. For calls that do not go through a client with `FencedBy`."""
        if not self.valid:
            raise TermEnded(f"term {self.number} of {self.scope} is over: this process no longer leads")

    def extend(self, until: float) -> bool:
        """Returns whether the term could be extended: a term that is over stays over."""
        if not self.valid:
            return False
        self._until = until
        return True

    def end(self) -> None:
        """Ends the term for good, whatever the thread that renews the lease does at this moment."""
        self._ended = True
