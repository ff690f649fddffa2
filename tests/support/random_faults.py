"""Random faults of calls to the API server."""

import random
from collections import Counter

from kairship.reconcile import Call, SystemClock
from support.reconcile import Fault, Faults


class RandomFaults(Faults):
    """Injects a fault into every third call. The same seed chooses the same faults for the same calls."""

    COMMON = (Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.DOUBLED, Fault.REFUSED)

    def __init__(self, seed: int) -> None:
        super().__init__(SystemClock())
        self.injected: Counter[Fault] = Counter()
        self.enabled = True
        self._random = random.Random(seed)  # noqa: S311 - it chooses faults, not keys

    def choose(self, call: Call) -> Fault | None:
        if not self.enabled or self._random.random() > 0.33:
            return None
        fault = Fault.DELAYED if self._random.random() < 0.05 else self._random.choice(self.COMMON)
        self.injected[fault] += 1
        return fault
