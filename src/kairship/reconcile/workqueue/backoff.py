"""Exponential backoff with jitter."""

import random

import msgspec


def jittered(seconds: float, *, spread: float = 0.2) -> float:
    """`seconds` with a random deviation of up to the fraction `spread`."""
    return seconds * random.uniform(1 - spread, 1 + spread)  # noqa: S311 - nothing secret about a pause


class Backoff(msgspec.Struct, frozen=True):
    """Pauses that double from `first` up to `cap`."""

    first: float
    cap: float

    def pause(self, failures: int) -> float:
        """The pause after that many failures in a row, at least one."""
        # Without a bound on the exponent, a key that has failed for weeks would raise OverflowError.
        return jittered(min(self.cap, self.first * 2.0 ** min(failures - 1, 64)))
