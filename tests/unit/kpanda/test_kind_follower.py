"""A follower ends when it is cancelled, also in the moment in which the index fails."""

import asyncio
from typing import cast

from kairship.index import BrokenIndexError, Writer
from kairship.kpanda.collector.kind_follower import KindFollower
from kairship.kube import Client, Connection, Resource, kinds
from kairship.reconcile import SystemClock


class FailingWriter:
    """Fails a `begin` when it is told to."""

    def __init__(self) -> None:
        self.begins = asyncio.Event()
        self.outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def begin(self, _: Resource) -> None:
        self.begins.set()
        await self.outcome

    async def mark_lost(self, _: Resource) -> None:
        pass


async def test_a_follower_that_is_cancelled_in_the_moment_of_a_failure_ends() -> None:
    writer = FailingWriter()
    async with Client(Connection(server="https://127.0.0.1:9")) as client:
        follower = KindFollower(
            client,
            kinds.CONFIGMAPS,
            cast("Writer", writer),
            clock=SystemClock(),
            list_slots=asyncio.Semaphore(1),
        )
        running = asyncio.create_task(follower.run())
        await writer.begins.wait()
        writer.outcome.set_exception(BrokenIndexError("the index failed"))
        running.cancel()
        await asyncio.wait((running,), timeout=10)
        assert running.cancelled()
