"""How clusters and instances fared over time: the last hour finely, the last month coarsely, nothing beyond it.

    Sample, Slot, TIERS   what is measured at a moment, and the rings that it is kept in
    History               what a database has to do; beside the index, in `sqlite` and `postgres`
    timeline              points for a chart, out of slots

A ring has a place for every slot of its time; the one that comes after the last overwrites the first. So what is kept
of a subject never grows. Subjects are uids, of clusters and of instances.
"""

from kairship.index.history.model import COARSE, FINE, TIERS, Cell, Sample, Slot, Tier
from kairship.index.history.postgres import PostgresHistory
from kairship.index.history.sqlite import SqliteHistory
from kairship.index.history.store import History
from kairship.index.history.timeline import Point, Span, Timeline, timeline

__all__ = [
    "COARSE",
    "FINE",
    "TIERS",
    "Cell",
    "History",
    "Point",
    "PostgresHistory",
    "Sample",
    "Slot",
    "Span",
    "SqliteHistory",
    "Tier",
    "Timeline",
    "timeline",
]
