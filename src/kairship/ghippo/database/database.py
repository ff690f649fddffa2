"""Transactions in threads, so that the event loop never blocks on a database.

A transaction is a plain function of a connection. Write transactions are serialised, on PostgreSQL too and across
replicas (by an advisory lock): chains and sequences need no further locking, and both databases behave alike.
Identities change rarely, and the entrance answers per-request questions from memory. Cancelling a caller does not stop
its transaction, which is committed or rolled back as a whole.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import alembic.command
import sqlalchemy as sa
import structlog
from alembic.config import Config
from sqlalchemy.engine import URL, make_url

from kairship.ghippo.errors import InvalidArgument, Unavailable
from kairship.process.change_notifier import ChangeNotifier

T = TypeVar("T")

log = structlog.get_logger(__name__)

_TIMEOUT = 10
_READERS = 4
_WRITES = "kairship_writes"
_LOCK = 0x6B616972  # an arbitrary number that all replicas share


class DatabaseDefectError(Exception):
    """The database rejected a statement, which is a defect of ours. The message has only the kind of the error."""


class Database:
    """`open` migrates the database; `close` ends its threads."""

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._sqlite = parsed.get_backend_name() == "sqlite"
        self._engine = _sqlite(parsed) if self._sqlite else _postgresql(parsed)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ghippo-write")
        self.changes = ChangeNotifier()
        """Notified after every write of this process; changes that other processes write do not show here."""
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="ghippo-read")

    async def open(self) -> None:
        await self.write(self._migrate)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._run, work, False)

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._writer, self._run, work, True)
        finally:
            self.changes.notify()

    def _run(self, work: Callable[[sa.Connection], T], writes: bool) -> T:
        try:
            with self._engine.connect().execution_options(**{_WRITES: writes}) as connection, connection.begin():
                if writes and not self._sqlite:
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
                return work(connection)
        except sa.exc.OperationalError as error:
            log.warning("the database does not answer", error=type(error.orig).__name__)
            raise Unavailable("the database does not answer; try again in a moment", retry_after=1.0) from None
        except sa.exc.DataError:
            raise InvalidArgument(
                "the request holds a text or number that cannot be stored, such as a NUL character"
            ) from None
        except sa.exc.DBAPIError as error:
            # PostgreSQL quotes the whole rejected row, and hashes and sealed secrets must not get into logs.
            raise DatabaseDefectError(type(error.orig).__name__) from None

    def _migrate(self, connection: sa.Connection) -> None:
        config = Config()
        config.set_main_option("script_location", "kairship.ghippo.database:migrations")
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, "head")

    def _close(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        self._engine.dispose()


def _sqlite(url: URL) -> sa.Engine:
    if not url.database:
        raise ValueError("an in-memory database would be one per connection; name a file")
    path = Path(url.database)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    os.chmod(path, 0o600)  # noqa: PTH101 - also if the file existed before
    # Parameters may be hashes and sealed secrets, so they are hidden from SQLAlchemy's logs and errors.
    engine = sa.create_engine(url, connect_args={"timeout": _TIMEOUT}, pool_size=_READERS + 1, hide_parameters=True)

    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions are begun below: sqlite3 would begin them too late
        cursor = connection.cursor()
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF"):
            cursor.execute(f"PRAGMA {setting}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL) -> sa.Engine:
    limits = f"-c statement_timeout={_TIMEOUT}s -c lock_timeout={_TIMEOUT}s -c idle_in_transaction_session_timeout=60s"
    return sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args={"connect_timeout": _TIMEOUT, "options": limits},
        pool_size=_READERS + 1,
        pool_timeout=_TIMEOUT,
        pool_pre_ping=True,
        hide_parameters=True,
    )
