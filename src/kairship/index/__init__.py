"""The read index: copies of the objects of many clusters, kept so that every read is answered from here.

    Intake, Record         from an object's bytes to what is stored of it
    Query, plan            one question over any kinds and clusters, restricted to what the caller may see
    Search                 words, as a person types them, over everything
    follow_rings           what changes in many clusters at once
    Writer, Index          what a database has to do; `sqlite` and `postgres` do it
    Current                whether the index can answer now, for this caller; else somebody else has to
    KubernetesReads        GET and LIST as an API server answers them, out of the index
    Splicer                watches that begin in the index and are continued by the cluster (`splice`)

The index can be deleted at any time and fills itself again. It never answers wrongly: what it cannot answer for (a
kind that is not followed, a namespace that is left out, a collector not heard of, a revision not reached) is passed
through to the cluster.
"""

from kairship.index.current import Current, Moment, PassThrough, refuse_partial
from kairship.index.fields import kind_called, kind_name
from kairship.index.highlights import Highlight, highlights
from kairship.index.positions import BadTokenError, PageMark, PageTokens
from kairship.index.query import Plan, Position, Query, Scope, Sort, plan
from kairship.index.reads import AGE_HEADER, KubernetesReads, ReadRequest, Reply
from kairship.index.records import BadObjectError, Intake, Record, revision
from kairship.index.ring import Followed, RingChange, RingMark, RingPage, follow_rings
from kairship.index.search import Hit, Rank, Search, SearchPosition, words_of
from kairship.index.selectors import BadSelectorError, parse_fields, parse_labels
from kairship.index.splice import Splicer, WatchReply, WatchRequest
from kairship.index.store import (
    BrokenIndexError,
    Change,
    Index,
    NoSuchClusterError,
    Partition,
    ReplacedError,
    Row,
    Size,
    Snapshot,
    Writer,
)
from kairship.index.writes import NOT_NOTED, Note, WriteLog, Written, note_write, revision_told

__all__ = [
    "AGE_HEADER",
    "NOT_NOTED",
    "BadObjectError",
    "BadSelectorError",
    "BadTokenError",
    "BrokenIndexError",
    "Change",
    "Current",
    "Followed",
    "Highlight",
    "Hit",
    "Index",
    "Intake",
    "KubernetesReads",
    "Moment",
    "NoSuchClusterError",
    "Note",
    "PageMark",
    "PageTokens",
    "Partition",
    "PassThrough",
    "Plan",
    "Position",
    "Query",
    "Rank",
    "ReadRequest",
    "Record",
    "ReplacedError",
    "Reply",
    "RingChange",
    "RingMark",
    "RingPage",
    "Row",
    "Scope",
    "Search",
    "SearchPosition",
    "Size",
    "Snapshot",
    "Sort",
    "Splicer",
    "WatchReply",
    "WatchRequest",
    "WriteLog",
    "Writer",
    "Written",
    "follow_rings",
    "highlights",
    "kind_called",
    "kind_name",
    "note_write",
    "parse_fields",
    "parse_labels",
    "plan",
    "refuse_partial",
    "revision",
    "revision_told",
    "words_of",
]
