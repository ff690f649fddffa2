"""How long to wait before the next attempt: longer each time, and never in step with everybody else."""

import random

import msgspec


def jittered(seconds: float, *, spread: float = 0.2) -> float:
    """`seconds`, give or take a part of it."""
    return seconds * random.uniform(1 - spread, 1 + spread)  # noqa: S311 - nothing secret about a pause


class Backoff(msgspec.Struct, frozen=True):
    """Pauses that double from `first` up to `cap`."""

    first: float
    cap: float

    def pause(self, failures: int) -> float:
        """After that many failures in a row, of which there is at least one."""
        # The exponent is bounded, or a key that has failed for weeks would raise OverflowError.
        return jittered(min(self.cap, self.first * 2.0 ** min(failures - 1, 64)))
