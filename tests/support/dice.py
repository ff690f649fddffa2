"""Faults at random, for whatever calls the API server."""

import random
from collections import Counter

from kairship.reconcile import Call, SystemClock
from kairship.reconcile.testing import Fault, Faults


class Dice(Faults):
    """Every third call meets with some fault. The seed makes a run repeatable as far as the server lets it be."""

    COMMON = (Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.DOUBLED, Fault.REFUSED)

    def __init__(self, seed: int) -> None:
        super().__init__(SystemClock())
        self.thrown: Counter[Fault] = Counter()
        self.loaded = True
        self._random = random.Random(seed)  # noqa: S311 - dice, not keys

    def choose(self, call: Call) -> Fault | None:
        if not self.loaded or self._random.random() > 0.33:
            return None
        fault = Fault.DELAYED if self._random.random() < 0.05 else self._random.choice(self.COMMON)
        self.thrown[fault] += 1
        return fault
