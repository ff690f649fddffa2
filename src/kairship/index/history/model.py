"""What is measured, and the rings that it is kept in."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from kairship.gen.kairship.kpanda.v1alpha1.history_pb import Measure

Sample: TypeAlias = Mapping[Measure, float]
"""What was found at one moment. What could not be measured is left out."""


class Tier(msgspec.Struct, frozen=True):
    number: int
    step: int
    """Seconds that a slot covers."""
    size: int
    """How many slots the ring has."""

    @property
    def seconds(self) -> int:
        return self.step * self.size

    def begin(self, at: float) -> int:
        """Of the slot that a moment is in."""
        return int(at) // self.step * self.step

    def place(self, begin: int) -> int:
        return begin // self.step % self.size


MEASURES = tuple(measure for measure in Measure if measure is not Measure.UNSPECIFIED)

FINE = Tier(0, 30, 120)
COARSE = Tier(1, 1800, 1488)
TIERS = (FINE, COARSE)


class Cell(msgspec.Struct, array_like=True):
    """One measure over the time of a slot."""

    total: float
    count: int
    least: float
    most: float

    def add(self, other: "Cell") -> None:
        self.total += other.total
        self.count += other.count
        self.least = min(self.least, other.least)
        self.most = max(self.most, other.most)


class Slot(msgspec.Struct):
    begin: int
    """Seconds since 1970."""
    cells: dict[int, Cell] = {}
    """By the number of the measure."""

    def take(self, sample: Sample) -> None:
        for measure, value in sample.items():
            cell = Cell(value, 1, value, value)
            if (known := self.cells.get(measure)) is None:
                self.cells[measure] = cell
            else:
                known.add(cell)


_cells = msgspec.msgpack.Decoder(dict[int, Cell])


def encoded(slot: Slot) -> bytes:
    return msgspec.msgpack.encode(slot.cells)


def decoded(begin: int, cells: bytes) -> Slot:
    return Slot(begin, _cells.decode(cells))
