"""client-go's informer, started from the index and continued by the cluster, through all kinds of failures.

The informer is Kubernetes' own code; the cluster is a real kube-apiserver on a real etcd that belongs to this module.
Each test proves that the informer ends with exactly what the server has, and gets no version of an object twice.
"""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from support import informer as informers
from support.index_server import IndexServer, index_server
from support.informer import Informer, InformerEvent, assert_nothing_twice, changes
from support.not_yet import NotYet
from support.own_cluster import OwnCluster, own_cluster, unreachable
from support.relay import Relay, relay_to
from support.waiting import PATIENCE, eventually

from kairship.engine import Engine
from kairship.index import Splicer
from kairship.index.sqlite import SqliteIndex, SqliteWriter
from kairship.kpanda.collector import KindFollower
from kairship.kube import Client, Connection, Expired, kinds
from kairship.reconcile import Backoff, ListWatchOptions, SystemClock

CLUSTER = "own"
# The first test of a run may have to compile the informer.
pytestmark = pytest.mark.timeout(600)
OPTIONS = ListWatchOptions(page_size=20, backoff=Backoff(0.1, 0.5))


@pytest.fixture(scope="module")
def own(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    with own_cluster(tmp_path_factory.mktemp("own"), engine) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def program() -> Path:
    return informers.build()


@dataclass
class Scene:
    """One kind of the cluster in the index, a server in front of both, an informer at that server."""

    own: OwnCluster
    client: Client
    """A client that goes straight to the cluster."""
    relay: Relay
    """The relay through which everything else reaches the cluster."""
    index: SqliteIndex
    server: IndexServer
    informer: Informer
    relist: Callable[[], Awaitable[None]]
    """Makes the collector begin anew."""

    async def write(self, prefix: str, count: int, text: str) -> list[str]:
        """The resourceVersions of the objects that were written."""
        versions = []
        for number in range(count):
            body = {"metadata": {"name": f"{prefix}-{number}"}, "data": {"text": text}}
            done = await self.client.apply(kinds.CONFIGMAPS, body, namespace="default", field_manager="test")
            versions.append(done["metadata"]["resourceVersion"])
        return versions

    async def delete(self, *names: str) -> None:
        for name in names:
            await self.client.delete(kinds.CONFIGMAPS, name, namespace="default")

    async def truth(self) -> dict[str, str]:
        page = await self.client.list(kinds.CONFIGMAPS)
        return {
            f"{one['metadata']['namespace']}/{one['metadata']['name']}": one["metadata"]["resourceVersion"]
            for one in page.items
        }

    async def agree(self, *, timeout: float = 180.0) -> None:
        """Waits until the informer has what the server has."""

        async def equal() -> NotYet | bool:
            difference = set((await self.informer.state()).items()) ^ set((await self.truth()).items())
            return NotYet(difference) if difference else True

        await eventually(equal, "the informer having what the server has", timeout=timeout)


@asynccontextmanager
async def background(*work: Awaitable[None]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


class Restartable:
    """A task that can be restarted."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._work())
        return self

    async def restart(self) -> None:
        await self.__aexit__()
        self._task = asyncio.create_task(self._work())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


async def beat(writer: SqliteWriter) -> None:
    while True:
        await writer.heartbeat()
        await asyncio.sleep(1)


@asynccontextmanager
async def scene(own: OwnCluster, program: Path, folder: Path) -> AsyncIterator[Scene]:
    clock = SystemClock()
    async with relay_to("127.0.0.1", own.plane.ports["kube-apiserver"]) as relay:
        far_connection = msgspec.structs.replace(
            own.connection, server=f"https://{relay.address}", tls_server_name="127.0.0.1"
        )
        async with Client(own.connection, timeout=60) as client, Client(far_connection, timeout=60) as far:
            writer = await SqliteWriter.open(folder / "index", CLUSTER)
            index = SqliteIndex(folder / "index")
            follower = KindFollower(
                far, kinds.CONFIGMAPS, writer, clock=clock, list_slots=asyncio.Semaphore(1), options=OPTIONS
            )
            async with Restartable(follower.run) as following, background(beat(writer)), Splicer(index) as splicer:
                await until_live(index)
                async with (
                    index_server(splicer, far, CLUSTER, kinds.CONFIGMAPS) as server,
                    informers.informer(program, server.url, kinds.CONFIGMAPS, folder) as informer,
                ):
                    await informer.synced()
                    yield Scene(own, client, relay, index, server, informer, following.restart)
            index.close()
            await writer.close()


async def until_live(index: SqliteIndex, *, timeout: float = 120.0) -> None:
    async def is_live() -> bool:
        async with index.snapshot(CLUSTER) as snapshot:
            partition = await snapshot.partition("configmaps")
        return partition is not None and partition.live

    await eventually(is_live, "ConfigMaps being followed", timeout=timeout)


async def test_every_change_once_and_in_order(own: OwnCluster, program: Path, tmp_path: Path) -> None:
    async with scene(own, program, tmp_path) as it:
        assert it.server.spliced == 1
        versions = [*await it.write("steady", 30, "1"), *await it.write("steady", 30, "2")]
        await it.delete("steady-0", "steady-1")
        await it.agree()

        def told(events: list[InformerEvent]) -> list[InformerEvent]:
            return [one for one in changes(events) if one.name.startswith("default/steady-")]

        # The cache of the informer is ahead of its handlers, which print the events.
        await it.informer.until(lambda events: len(told(events)) >= len(versions) + 2)
        mine = told(it.informer.events)
        assert [one.version for one in mine if one.event != "delete"] == versions
        assert [one.name for one in mine if one.event == "delete"] == ["default/steady-0", "default/steady-1"]
        assert_nothing_twice(it.informer.events)
        assert (it.server.spliced, it.server.passed) == (1, 0)


async def test_beginning_in_the_middle_of_changes(own: OwnCluster, program: Path, tmp_path: Path) -> None:
    """Informers that start while objects change: the snapshot and the watch fit together exactly."""
    async with scene(own, program, tmp_path) as it:
        busy = asyncio.create_task(it.write("busy", 300, "1"))
        for number in range(4):
            folder = tmp_path / str(number)
            folder.mkdir()
            async with informers.informer(program, it.server.url, kinds.CONFIGMAPS, folder) as late:
                await late.synced()
                if number == 3:
                    await busy
                    await replace(it, informer=late).agree()
                assert_nothing_twice(late.events)
        await it.agree()
        assert_nothing_twice(it.informer.events)
        assert it.server.passed == 0


async def test_through_a_crash_of_the_api_server(own: OwnCluster, program: Path, tmp_path: Path) -> None:
    async with scene(own, program, tmp_path) as it:
        await it.write("crash", 5, "1")
        await it.agree()
        spliced = it.server.spliced
        await own.kill()
        await it.write("crash", 5, "2")
        await it.delete("crash-4")
        await it.agree()
        # The new server does not know revisions from before its start: the informer begins anew, from the index.
        await it.write("crash", 4, "3")
        await it.agree()
        assert_nothing_twice(it.informer.events)
        assert it.server.spliced >= spliced


async def test_a_revision_that_was_compacted_is_not_spliced(own: OwnCluster, program: Path, tmp_path: Path) -> None:
    """The index is cut off, etcd is compacted, and the server is restarted: the index cannot be used."""
    async with scene(own, program, tmp_path) as it:
        await it.write("compact", 5, "1")
        await it.agree()
        async with unreachable(it.relay):
            await it.write("compact", 5, "2")
            await it.delete("compact-0")
            await own.compact((await it.client.list(kinds.CONFIGMAPS)).resource_version)
            await own.kill()
        await it.agree()
        assert_nothing_twice(it.informer.events)
        await it.write("compact", 4, "3")
        await it.agree()


async def test_a_stale_index_never_syncs_an_informer(own: OwnCluster, program: Path, tmp_path: Path) -> None:
    """A partition is marked as live at a revision that the server no longer has: the request passes through."""
    async with scene(own, program, tmp_path) as it:
        await it.write("stale", 3, "1")
        await it.agree()
        folder = tmp_path / "stale"
        writer = await SqliteWriter.open(folder / "index", CLUSTER)
        await writer.begin(kinds.CONFIGMAPS)
        await writer.end(kinds.CONFIGMAPS, 2)
        await writer.heartbeat()
        await own.compact((await it.client.list(kinds.CONFIGMAPS)).resource_version)
        await own.kill()
        index = SqliteIndex(folder / "index")
        async with (
            Splicer(index) as splicer,
            index_server(splicer, it.client, CLUSTER, kinds.CONFIGMAPS) as server,
            informers.informer(program, server.url, kinds.CONFIGMAPS, folder) as late,
        ):
            await late.synced()
            assert await late.state() == await it.truth()
            # On a busy machine the refusal of the cluster may arrive after the watch was taken for spliced. That watch
            # ends without having synced the informer, and the next one passes through.
            assert (server.passed, set(server.statuses)) == (1, {200})
        index.close()
        await writer.close()
        await it.agree()


async def test_through_a_restore_that_turns_revisions_back(own: OwnCluster, program: Path, tmp_path: Path) -> None:
    """etcd is restored from a copy, and then written to until its revisions have passed the lost ones."""
    async with scene(own, program, tmp_path) as it:
        await it.write("kept", 3, "1")
        await it.agree()
        copy = own.plane.etcd_data.with_name("copy")
        async with unreachable(it.relay), own.stopped():
            await asyncio.to_thread(shutil.copytree, own.plane.etcd_data, copy)
        await it.write("lost", 10, "1")
        await it.delete("kept-0")
        await it.agree()
        lost = {one.version for one in it.informer.events}
        async with unreachable(it.relay):
            async with own.stopped():
                await asyncio.to_thread(shutil.rmtree, own.plane.etcd_data)
                copy.rename(own.plane.etcd_data)
            # This goes past every revision that the informer and the index have seen, before either is back.
            while True:
                versions = await it.write("after", 10, str(time.time()))
                if int(versions[-1]) > max(int(version) for version in lost if version) + 10:
                    break
        await it.agree()
        assert not any(name.startswith("default/lost") for name in await it.informer.state())
        await it.write("kept", 3, "2")
        await it.agree()
        # A watch that came before the index was live again passed through, until the new epoch of the index ended it.
        await eventually(lambda: it.server.spliced > 1, "a watch that begins in the index again")


async def refused_as_expired(url: str, revision: str) -> None:
    """A plain watch from `revision` through the server gets 410, so that its client lists again."""
    async with Client(Connection(server=url), timeout=60) as plain:
        watch = plain.watch(kinds.CONFIGMAPS, resource_version=revision)
        async with aclosing(watch):
            with pytest.raises(Expired):
                await asyncio.wait_for(anext(watch), PATIENCE)


async def test_plain_watches_are_fenced(own: OwnCluster, program: Path, tmp_path: Path) -> None:
    """Watches from a future revision and from one before the epoch, and an open watch whose epoch ends, get 410."""
    async with scene(own, program, tmp_path) as it:
        (version,) = await it.write("fence", 1, "1")
        await it.agree()
        await refused_as_expired(it.server.url, str(int(version) + 1000))

        async with Client(Connection(server=it.server.url), timeout=60) as plain:
            watch = plain.watch(kinds.CONFIGMAPS, resource_version=version)
            async with aclosing(watch):
                following = asyncio.ensure_future(anext(watch))
                await it.write("fence", 1, "2")
                assert (await asyncio.wait_for(following, PATIENCE)).object["data"] == {"text": "2"}
                # Only the collector begins anew: the connection of this watch stays as it is.
                following = asyncio.ensure_future(anext(watch))
                async with it.index.snapshot(CLUSTER) as snapshot:
                    before = await snapshot.partition("configmaps")
                await it.relist()
                with pytest.raises(Expired):
                    await asyncio.wait_for(following, PATIENCE)
        await until_live(it.index)
        async with it.index.snapshot(CLUSTER) as snapshot:
            after = await snapshot.partition("configmaps")
        assert before is not None
        assert after is not None
        assert after.epoch > before.epoch
        await refused_as_expired(it.server.url, str(after.first_revision - 1))
        await it.agree()
