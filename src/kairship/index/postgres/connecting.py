"""Connections to PostgreSQL, and its errors as the index's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from kairship.index.store import BrokenIndexError

Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

# The third is what a call says that finds its connection ended by the server a moment ago.
_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


@contextmanager
def typed_errors() -> Iterator[None]:
    """The text of an error of PostgreSQL may quote what was stored: only its kind is passed on."""
    try:
        yield
    except _ERRORS as error:
        raise BrokenIndexError(f"the index's database does not do as it should ({type(error).__name__})") from error
