"""Gives a process that reads the index access to it: opens it in the background and closes it in the end.

Until it is open, and where no index is configured, there is no `CurrentIndex`, and reads go to the clusters themselves.
A directory can be opened at once; a database may be down when the process starts.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import structlog

from kairship.index.current_index import CurrentIndex
from kairship.index.history import History, PostgresHistory, SqliteHistory
from kairship.index.page_tokens import PageTokens
from kairship.index.postgres import PostgresStore
from kairship.index.reads import KubernetesReads
from kairship.index.splice import Splicer
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, page_token_key
from kairship.index.store import BrokenIndexError

log = structlog.get_logger(__name__)

_RETRY_AFTER = 5.0


class IndexLocation(msgspec.Struct, frozen=True):
    """Where the index is kept: in a directory, in a database, or nowhere."""

    directory: Path | None = None
    url_file: Path | None = None
    """A file with the URL of a PostgreSQL database. It is a file because the URL may carry a password."""


class OpenIndex(msgspec.Struct, frozen=True):
    """An index that is open, and what reads from it."""

    current: CurrentIndex
    tokens: PageTokens
    history: History
    reads: KubernetesReads
    splicer: Splicer


class IndexAccess:
    """`run` opens the index, and closes it when it is cancelled. `opened` is None until then."""

    def __init__(self, location: IndexLocation) -> None:
        self._location = location
        self.opened: OpenIndex | None = None

    def current(self) -> CurrentIndex | None:
        return self.opened.current if self.opened else None

    async def run(self) -> None:
        if self._location == IndexLocation():
            return
        async with AsyncExitStack() as held:
            while self.opened is None:
                try:
                    self.opened = await self._open(held)
                except (BrokenIndexError, OSError) as error:
                    log.warning("the index cannot be opened: clusters are read directly", error=str(error))
                    await asyncio.sleep(_RETRY_AFTER)
            try:
                await asyncio.Event().wait()
            finally:
                self.opened = None

    async def _open(self, held: AsyncExitStack) -> OpenIndex:
        if self._location.url_file is not None:
            try:
                opening = await PostgresStore.open(self._location.url_file.read_text().strip())
            except ValueError:
                # The error does not quote the URL, because the password may be in it.
                raise BrokenIndexError(f"{self._location.url_file} does not hold the URL of a database") from None
            store = await held.enter_async_context(opening)
            current, tokens = CurrentIndex(store.index(), store.write_log()), PageTokens(await store.page_token_key())
            return await _opened(held, current, tokens, PostgresHistory(store.pool))
        if self._location.directory is not None:
            root = self._location.directory
            index, writes = SqliteIndex(root), SqliteWriteLog(root)
            held.callback(index.close)
            held.callback(writes.close)
            tokens = PageTokens(page_token_key(root))
            return await _opened(held, CurrentIndex(index, writes), tokens, SqliteHistory(root))
        raise BrokenIndexError("no location of the index was given")


async def _opened(held: AsyncExitStack, current: CurrentIndex, tokens: PageTokens, history: History) -> OpenIndex:
    splicer = await held.enter_async_context(Splicer(current.index))
    return OpenIndex(current, tokens, history, KubernetesReads(current, tokens), splicer)
