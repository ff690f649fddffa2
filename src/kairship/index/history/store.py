"""The interface of a database that keeps the history."""

from collections.abc import Mapping
from typing import Protocol

from kairship.index.history.model import Sample, Slot, Tier


class History(Protocol):
    """Several processes may record the same samples: a mean does not change by values that are in it twice."""

    async def record(self, at: float, samples: Mapping[str, Sample]) -> None:
        """Records the samples of all subjects at one moment. Raises `BrokenIndexError`."""

    async def read(self, subject: str, tier: Tier, *, since: float, until: float) -> list[Slot]:
        """The slots that overlap with that time, in order. Raises `BrokenIndexError`."""
