"""Connections to PostgreSQL, and the translation of its errors into those of the index."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from kairship.index.store import BrokenIndexError

Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

ACQUIRE_TIMEOUT = 30.0
"""Seconds for a free connection of the pool, and also for its return: asyncpg waits there for the server to cancel a
query that its caller gave up, for ever unless told otherwise, and the connection is lost to the pool meanwhile."""

# The third is raised by a call whose connection the server has just ended.
_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


@contextmanager
def typed_errors() -> Iterator[None]:
    """Raises errors of PostgreSQL as `BrokenIndexError`, with their type alone: their text may quote stored data.

    A task that is cancelled in the block gets its `CancelledError`, also if returning its connection fails after that.
    """
    task = asyncio.current_task()
    cancelled_before = task.cancelling() if task else 0
    try:
        yield
    except _ERRORS as error:
        if task is not None and task.cancelling() > cancelled_before:
            raise asyncio.CancelledError from error
        raise BrokenIndexError(f"the index's database failed ({type(error).__name__})") from error
