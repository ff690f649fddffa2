"""The index in SQLite: one file per cluster, written by one process and read by any number on the same machine.

files                     which file holds a cluster, and the key of page tokens
reader, snapshot          the implementations of `Index` and `Snapshot`
writer                    the implementation of `Writer`
emitter                   SQL for the plan of a query
searching, search_words   SQL for a search
change_feed, write_log    a cluster's latest changes, and callers' recent writes
inline_executor, threads  short reads on the event loop, and everything else in threads
schema, statements, clock the tables, shorthands for statements, and the clock that all processes share
"""

from kairship.index.sqlite.files import clusters, page_token_key, remove_cluster
from kairship.index.sqlite.reader import SqliteIndex
from kairship.index.sqlite.write_log import SqliteWriteLog
from kairship.index.sqlite.writer import SqliteWriter

__all__ = ["SqliteIndex", "SqliteWriteLog", "SqliteWriter", "clusters", "page_token_key", "remove_cluster"]
