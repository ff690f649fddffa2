"""The read index: copies of the objects of many clusters, kept so that every read is answered from here.

    Intake, Record         from an object's bytes to what is stored of it
    Query, plan            one question over any kinds and clusters, restricted to what the caller may see
    Writer, Index          what a database has to do; `sqlite` and `postgres` do it
    Splicer                watches that begin in the index and are continued by the cluster (`splice`)

The index can be deleted at any time and fills itself again. It never answers wrongly: what it cannot answer for (a
kind that is not followed, a collector not heard of, a revision not reached) is passed through to the cluster.
"""

from kairship.index.fields import kind_name
from kairship.index.query import Plan, Position, Query, Scope, Sort, plan
from kairship.index.records import BadObjectError, Intake, Record, revision
from kairship.index.selectors import BadSelectorError, parse_fields, parse_labels
from kairship.index.splice import Splicer, WatchReply, WatchRequest
from kairship.index.store import (
    BrokenIndexError,
    Change,
    Index,
    NoSuchClusterError,
    Partition,
    Row,
    Snapshot,
    Writer,
)

__all__ = [
    "BadObjectError",
    "BadSelectorError",
    "BrokenIndexError",
    "Change",
    "Index",
    "Intake",
    "NoSuchClusterError",
    "Partition",
    "Plan",
    "Position",
    "Query",
    "Record",
    "Row",
    "Scope",
    "Snapshot",
    "Sort",
    "Splicer",
    "WatchReply",
    "WatchRequest",
    "Writer",
    "kind_name",
    "parse_fields",
    "parse_labels",
    "plan",
    "revision",
]
