"""The index in SQLite: one file per cluster, written by one process and read by any number on the same machine."""

from kairship.index.sqlite.files import clusters, page_token_key, remove_cluster
from kairship.index.sqlite.reader import SqliteIndex
from kairship.index.sqlite.write_log import SqliteWriteLog
from kairship.index.sqlite.writer import SqliteWriter

__all__ = ["SqliteIndex", "SqliteWriteLog", "SqliteWriter", "clusters", "page_token_key", "remove_cluster"]
