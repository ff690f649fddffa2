"""Points for a chart: slots, aggregated to the step of the request. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kairship.gen.kairship.kpanda.v1alpha1.history_pb import Measure
from kairship.index.history.model import COARSE, FINE, MEASURES, Cell, Slot, Tier

MOST_POINTS = 1000


class Span(msgspec.Struct, frozen=True):
    """The time range of a chart and its step, after they were adjusted to what is kept."""

    since: int
    until: int
    step: int
    tier: Tier

    @classmethod
    def of(cls, *, since: int, until: int, step: int, now: float) -> "Span":
        """0 stands for a value that is not given. The step becomes a multiple of the tier's step, and large enough."""
        until = min(until or int(now) + 1, int(now) + 1)
        since = max(since or until - FINE.seconds, int(now) - COARSE.seconds, 0)
        tier = FINE if since >= now - FINE.seconds - FINE.step else COARSE
        wanted = max(step, tier.step, -(-(until - since) // MOST_POINTS))
        return cls(since, until, -(-wanted // tier.step) * tier.step, tier)


class Point(msgspec.Struct, frozen=True):
    time: int
    value: float
    least: float
    most: float


class Timeline(msgspec.Struct, frozen=True):
    step: int
    series: Mapping[Measure, Sequence[Point]]
    """Every measure of the request. A measure without values has no points."""


def timeline(slots: Iterable[Slot], span: Span, measures: Iterable[Measure]) -> Timeline:
    wanted = sorted(set(measures) or set(MEASURES))
    gathered: dict[Measure, dict[int, Cell]] = {measure: {} for measure in wanted}
    for slot in slots:
        end = (slot.begin // span.step + 1) * span.step
        for measure in wanted:
            if (cell := slot.cells.get(measure)) is None:
                continue
            if (known := gathered[measure].get(end)) is None:
                gathered[measure][end] = Cell(cell.total, cell.count, cell.least, cell.most)
            else:
                known.add(cell)
    return Timeline(
        span.step,
        {
            measure: [
                Point(min(end, span.until), cell.total / cell.count, cell.least, cell.most)
                for end, cell in sorted(cells.items())
            ]
            for measure, cells in gathered.items()
        },
    )
