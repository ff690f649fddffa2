"""In PostgreSQL only one process writes a cluster: the one that began last."""

import asyncio
import time

import pytest
from support.index_objects import body, fill, keys
from support.postgres import new_database

from kairship.index import BrokenIndexError, Change, RecordBuilder, ReplacedError, Writer
from kairship.index.postgres import PostgresStore
from kairship.index.postgres.database_errors import typed_errors
from kairship.kube import kinds

RECORD = RecordBuilder(kinds.CONFIGMAPS).record(body("late", revision=900))


async def assert_refused(writer: Writer) -> None:
    kind = kinds.CONFIGMAPS
    for call in (
        writer.begin(kind),
        writer.put(kind, [RECORD]),
        writer.end(kind, 900),
        writer.apply(kind, [Change(RECORD)], 900),
        writer.mark_lost(kind),
        writer.drop_kind(kind),
        writer.expire(kind, 2**40),
        writer.drop_namespaces(["default"]),
        writer.kinds(),
        writer.heartbeat(),
    ):
        with pytest.raises(ReplacedError, match="another process"):
            await call


@pytest.fixture
async def url(postgres: str) -> str:
    return await asyncio.to_thread(new_database, postgres)


async def test_who_was_replaced_changes_nothing_any_more(url: str) -> None:
    async with await PostgresStore.open(url) as one, await PostgresStore.open(url) as two:
        before = await one.writer("c")
        await fill(before, kinds.CONFIGMAPS, body("a", revision=1))
        after = await two.writer("c")
        await assert_refused(before)
        await fill(after, kinds.CONFIGMAPS, body("b", revision=2))
        assert await keys(one.index(), cluster="c") == ["default/b"]
        assert await one.clusters() == {"c"}


async def test_who_writes_a_removed_cluster_brings_nothing_back(url: str) -> None:
    async with await PostgresStore.open(url) as store:
        writer = await store.writer("c")
        await fill(writer, kinds.CONFIGMAPS, body("a", revision=1))
        await store.remove_cluster("c")
        await assert_refused(writer)
        assert await store.clusters() == set()


async def test_one_that_stops_in_a_transaction_keeps_the_next_out_for_seconds_only(url: str) -> None:
    """Stops in the middle of a transaction, like a process that is suspended or whose machine is gone."""
    async with await PostgresStore.open(url) as one, await PostgresStore.open(url) as two:
        await fill(await one.writer("c"), kinds.CONFIGMAPS, body("a", revision=1))
        async with one._pool.acquire() as stopped:
            await stopped.execute("BEGIN")
            await stopped.execute("SELECT term FROM writer FOR SHARE")
            began = time.monotonic()
            # PostgreSQL ends the transaction after three seconds; without that, the statement would end after 55 s.
            async with asyncio.timeout(40):
                writer = await two.writer("c")
            assert time.monotonic() - began < 30
            with pytest.raises(BrokenIndexError), typed_errors():
                await stopped.execute("COMMIT")
        await writer.heartbeat()
