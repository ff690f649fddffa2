"""The history of clusters and instances: measurements of the last hour in fine steps, of the last month in coarse ones.

    model       `Sample`, what is measured at one moment; `Slot` and `TIERS`, the round-robin archives that keep it
    store       `History`, the interface of a database; `sqlite` and `postgres` implement it, beside the index
    timeline    points for a chart, computed from slots

A tier is a round-robin archive: it has a fixed number of slots, and the next slot overwrites the oldest one. So what is
kept of a subject never grows. Subjects are the uids of clusters and of instances' virtual clusters.
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
