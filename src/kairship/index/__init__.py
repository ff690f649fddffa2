"""The read index: copies of the objects of many clusters, which answer reads in place of the clusters.

    records          `RecordBuilder` makes a `Record` of an object's bytes: what is stored of it
    query            a `Query` over any kinds and clusters, restricted to what the caller may see, and its `plan`
    search           `Search` for words, as a person types them, over everything; `highlights` says why a hit was found
    change_feed      the latest changes of a cluster; `feed_follower` follows those of many clusters
    store            `Writer` and `Index`, the interface of a database; `sqlite` and `postgres` implement it
    current_index    `CurrentIndex` decides whether the index can answer now, for this caller
    read_through     `ReadThrough` reads from the index or else from the cluster, and notes a caller's writes
    write_log        callers' recent writes, so that each caller reads its own writes
    reads            `KubernetesReads` answers GET and LIST as an API server does (`negotiation`, `representations`,
                     `tables`, `page_tokens` and `statuses` are its parts)
    splice           `Splicer` answers watches that begin in the index and are continued by the cluster
    history          how clusters and instances fared over time
    index_access     opens an index in the background, for a process that reads it

The index can be deleted at any time and fills itself again. It never answers wrongly: a read that it cannot answer for
certain (of a kind that is not followed, of an excluded namespace, without a recent heartbeat of the collector, at a
revision that it has not reached) passes through to the cluster.
"""

from kairship.index.change_feed import FeedChange
from kairship.index.current_index import CurrentIndex, PassThrough
from kairship.index.feed_follower import FeedEvent, follow_feeds
from kairship.index.page_tokens import BadTokenError, PagePosition, PageTokens
from kairship.index.query import Position, Query, Sort, VisibleScope, plan
from kairship.index.read_through import ReadThrough, index_or_cluster
from kairship.index.reads import AGE_HEADER, KubernetesReads, ReadRequest
from kairship.index.records import BadObjectError, RecordBuilder, revision
from kairship.index.search.highlights import highlights
from kairship.index.search.model import Hit, Rank, Search, SearchPosition, words_of
from kairship.index.selectable_fields import kind_called, kind_name
from kairship.index.selectors import BadSelectorError, parse_fields, parse_labels
from kairship.index.splice import Splicer, WatchRequest
from kairship.index.store import (
    BrokenIndexError,
    Change,
    Index,
    NoSuchClusterError,
    Partition,
    ReplacedError,
    Size,
    Snapshot,
    Writer,
)
from kairship.index.write_log import NOT_NOTED, Write, WriteLog, comparable_revision, note_write

__all__ = [
    "AGE_HEADER",
    "NOT_NOTED",
    "BadObjectError",
    "BadSelectorError",
    "BadTokenError",
    "BrokenIndexError",
    "Change",
    "CurrentIndex",
    "FeedChange",
    "FeedEvent",
    "Hit",
    "Index",
    "KubernetesReads",
    "NoSuchClusterError",
    "PagePosition",
    "PageTokens",
    "Partition",
    "PassThrough",
    "Position",
    "Query",
    "Rank",
    "ReadRequest",
    "ReadThrough",
    "RecordBuilder",
    "ReplacedError",
    "Search",
    "SearchPosition",
    "Size",
    "Snapshot",
    "Sort",
    "Splicer",
    "VisibleScope",
    "WatchRequest",
    "Write",
    "WriteLog",
    "Writer",
    "comparable_revision",
    "follow_feeds",
    "highlights",
    "index_or_cluster",
    "kind_called",
    "kind_name",
    "note_write",
    "parse_fields",
    "parse_labels",
    "plan",
    "revision",
    "words_of",
]
