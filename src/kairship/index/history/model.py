"""Samples, and the round-robin archives (tiers of slots) in which they are kept."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from kairship.gen.kairship.kpanda.v1alpha1.history_pb import Measure

Sample: TypeAlias = Mapping[Measure, float]
"""The values of one moment. Measures that could not be taken are left out."""


class Tier(msgspec.Struct, frozen=True):
    """A round-robin archive of one resolution."""

    number: int
    step: int
    """The seconds that a slot covers."""
    size: int
    """The number of slots."""

    @property
    def seconds(self) -> int:
        return self.step * self.size

    def begin(self, at: float) -> int:
        """The beginning of the slot that contains a moment."""
        return int(at) // self.step * self.step

    def index(self, begin: int) -> int:
        """The index of the slot that begins then (the column `place`)."""
        return begin // self.step % self.size


MEASURES = tuple(measure for measure in Measure if measure is not Measure.UNSPECIFIED)

FINE = Tier(0, 30, 120)
COARSE = Tier(1, 1800, 1488)
TIERS = (FINE, COARSE)


class Cell(msgspec.Struct, array_like=True):
    """One measure, aggregated over the time of a slot."""

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
    """All measures of one subject, over the time of a slot."""

    begin: int
    """Seconds since 1970."""
    cells: dict[int, Cell] = {}
    """By the number of the measure."""

    def add(self, sample: Sample) -> None:
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
