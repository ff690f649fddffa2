"""The index in PostgreSQL: all clusters in one database, for planes on several machines."""

from kairship.index.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
