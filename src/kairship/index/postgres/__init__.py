"""The index in PostgreSQL: all clusters in one database, for planes on several machines.

store                   `PostgresStore`: the connection pool, and who may write which cluster
reader, writer          the implementations of `Index`, `Snapshot` and `Writer`
emitter, searching      SQL for the plan of a query, and for a search
schema, write_log       the tables, and callers' recent writes
database_errors, execute_many
                        connections with their errors, and statements for many rows
"""

from kairship.index.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
