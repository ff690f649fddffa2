"""A token bucket: limits an average rate and allows bursts."""


class TokenBucket:
    """Gives `rate` tokens per second and `burst` at once. A token can be reserved ahead of time."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = self._burst
        self._at = 0.0

    def reserve(self, now: float) -> float:
        """Reserves a token and returns in how many seconds it is available."""
        self._refill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate)

    def is_full(self, now: float) -> bool:
        """Whether the bucket is in the state of a new one."""
        self._refill(now)
        return self._tokens >= self._burst

    def _refill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
