"""Token buckets: a rate that holds on average, with room for a burst."""


class TokenBucket:
    """`rate` per second, `burst` at once. A token may be taken ahead of time, and is then to be waited for."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = self._burst
        self._at = 0.0

    def reserve(self, now: float) -> float:
        """Take a token and say in how many seconds it is there."""
        self._refill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate)

    def is_full(self, now: float) -> bool:
        """Whether it is as good as new."""
        self._refill(now)
        return self._tokens >= self._burst

    def _refill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
