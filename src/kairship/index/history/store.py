"""What a database has to be able to do for histories."""

from collections.abc import Mapping
from typing import Protocol

from kairship.index.history.model import Sample, Slot, Tier


class History(Protocol):
    """Several processes may record the same: a mean is none the worse for values that are in it twice."""

    async def record(self, at: float, samples: Mapping[str, Sample]) -> None:
        """Of all subjects, at one moment. Raises `BrokenIndexError`."""

    async def read(self, subject: str, tier: Tier, *, since: float, until: float) -> list[Slot]:
        """The slots that have some of that time, in its order. Raises `BrokenIndexError`."""
