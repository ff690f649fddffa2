"""The index as a process finds it: where it is, opened in the background, and closed in the end.

Until it is open, and where there is none, there is no `Current`, and reads go to the clusters themselves. A directory
is there at once; a database may be down when the process starts.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import structlog

from kairship.index.current import Current
from kairship.index.history import History, PostgresHistory, SqliteHistory
from kairship.index.positions import PageTokens
from kairship.index.postgres import PostgresStore
from kairship.index.reads import KubernetesReads
from kairship.index.splice import Splicer
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, page_token_key
from kairship.index.store import BrokenIndexError

log = structlog.get_logger(__name__)

_LOOK_AGAIN = 5.0


class IndexPlace(msgspec.Struct, frozen=True):
    """Where the index is: one of the two, or nowhere."""

    directory: Path | None = None
    url_file: Path | None = None
    """A file with the URL of a PostgreSQL database. A file, because the URL may carry a password."""


class Opened(msgspec.Struct, frozen=True):
    current: Current
    tokens: PageTokens
    history: History
    reads: KubernetesReads
    splicer: Splicer


class IndexAccess:
    """`run` opens it, and closes it when it is cancelled."""

    def __init__(self, place: IndexPlace) -> None:
        self._place = place
        self.opened: Opened | None = None

    def current(self) -> Current | None:
        return self.opened.current if self.opened else None

    async def run(self) -> None:
        if self._place == IndexPlace():
            return
        async with AsyncExitStack() as held:
            while self.opened is None:
                try:
                    self.opened = await self._open(held)
                except (BrokenIndexError, OSError) as error:
                    log.warning("the index cannot be opened: clusters are read directly", error=str(error))
                    await asyncio.sleep(_LOOK_AGAIN)
            try:
                await asyncio.Event().wait()
            finally:
                self.opened = None

    async def _open(self, held: AsyncExitStack) -> Opened:
        if self._place.url_file is not None:
            try:
                opening = await PostgresStore.open(self._place.url_file.read_text().strip())
            except ValueError:
                # Without the text: it may have the password in it.
                raise BrokenIndexError(f"{self._place.url_file} has no URL of a database in it") from None
            store = await held.enter_async_context(opening)
            current, tokens = Current(store.index(), store.write_log()), PageTokens(await store.page_token_key())
            return await _opened(held, current, tokens, PostgresHistory(store.pool))
        if self._place.directory is not None:
            root = self._place.directory
            index, writes = SqliteIndex(root), SqliteWriteLog(root)
            held.callback(index.close)
            held.callback(writes.close)
            tokens = PageTokens(page_token_key(root))
            return await _opened(held, Current(index, writes), tokens, SqliteHistory(root))
        raise BrokenIndexError("no place was given")


async def _opened(held: AsyncExitStack, current: Current, tokens: PageTokens, history: History) -> Opened:
    splicer = await held.enter_async_context(Splicer(current.index))
    return Opened(current, tokens, history, KubernetesReads(current, tokens), splicer)
