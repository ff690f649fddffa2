"""The index under all faults at once: writers, cut connections, crashes, compaction, a restore, a killed collector.

Meanwhile readers check that they never see what must not be seen: an object older than its own write, a list revision
that goes back within an epoch, a deleted object that returns. At quiescence the index is the API server, byte by byte.
KAIRSHIP_SOAK_SECONDS makes it longer.
"""

import asyncio
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.collector_process import CollectorProcess
from support.own_cluster import OwnCluster, own_cluster, unreachable
from support.relay import Relay, relay_to
from support.waiting import eventually

from kairship.engine import Engine
from kairship.index import (
    CurrentIndex,
    KubernetesReads,
    NoSuchClusterError,
    PageTokens,
    PassThrough,
    ReadRequest,
    Write,
)
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog
from kairship.kpanda.collector import CollectorSettings
from kairship.kube import Client, Connection, KubeError, kinds
from kairship.reconcile import Backoff, ListWatchOptions

CLUSTER = "soak"
SECONDS = float(os.environ.get("KAIRSHIP_SOAK_SECONDS", "12"))
WRITERS = 4
FAST = CollectorSettings(heartbeat=0.5, list_watch=ListWatchOptions(page_size=20, backoff=Backoff(0.1, 0.5)))
pytestmark = pytest.mark.timeout(SECONDS * 3 + 600)  # starts of servers on a busy machine take most of it


@pytest.fixture(scope="module")
def own(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    with own_cluster(tmp_path_factory.mktemp("own"), engine) as cluster:
        yield cluster


class Traffic:
    """Writers that read what they wrote. `era` counts restores: what was written before one may be lost by it."""

    def __init__(self, client: Client, reads: KubernetesReads, writes: SqliteWriteLog) -> None:
        self._client = client
        self._reads = reads
        self._writes = writes
        self.era = 0
        self.over = False
        self.served = 0
        self.passed = 0
        self.lists: dict[int, int] = {}
        self.acts: Counter[str] = Counter()

    def has_served(self, number: int) -> bool:
        return self.served >= number

    async def write(self, caller: str) -> None:
        number = 0
        while not self.over:
            number += 1
            era = self.era
            with suppress(KubeError):  # the test breaks the server at this time
                await self._write_and_read(caller, f"{caller}-{number % 5}", number, era)
            await asyncio.sleep(0.01)

    async def _write_and_read(self, caller: str, name: str, number: int, era: int) -> None:
        body = {"metadata": {"name": name}, "data": {"n": str(number)}}
        done = await self._client.apply(kinds.CONFIGMAPS, body, namespace="default", field_manager="soak")
        await self._writes.note(caller, Write(CLUSTER, "configmaps", int(done["metadata"]["resourceVersion"])))
        seen = await self._get(caller, name)
        if seen is not None and era == self.era:
            assert seen["kind"] == "ConfigMap", f"{name} was written and is not there"
            assert int(seen["data"]["n"]) >= number, "a reader saw an object older than its own write"
        if number % 4 == 0:
            await self._client.delete(kinds.CONFIGMAPS, name, namespace="default")
            await self._writes.note(caller, Write(CLUSTER, "configmaps", deleted_uid=done["metadata"]["uid"]))
            seen = await self._get(caller, name)
            if seen is not None and era == self.era:
                assert seen["kind"] == "Status", "a deleted object returned"

    async def _get(self, caller: str, name: str) -> dict[str, Any] | None:
        """Returns None when the request passes through to the API server."""
        request = ReadRequest(CLUSTER, kinds.CONFIGMAPS, {}, caller, "default", name)
        try:
            async with self._reads.answer(request) as reply:
                self.served += 1
                found: dict[str, Any] = msgspec.json.decode(b"".join([chunk async for chunk in reply.body]))
                return found
        except PassThrough:
            self.passed += 1
            return None

    async def watch_revisions(self, index: SqliteIndex) -> None:
        while not self.over:
            with suppress(NoSuchClusterError):
                async with index.snapshot(CLUSTER) as snapshot:
                    found = await snapshot.partition("configmaps")
                if found is not None and found.live:
                    assert found.revision >= self.lists.get(found.epoch, 0), "a list revision went back in its epoch"
                    self.lists[found.epoch] = found.revision
            await asyncio.sleep(0.01)


async def misfortune(
    own: OwnCluster, relay: Relay, collector: CollectorProcess, client: Client, traffic: Traffic, until: float
) -> None:
    """Injects one fault after another; after each, reads are served from the index again.

    All but one happen at least once: that connections are forgotten takes a while to be noticed.
    """

    async def cut() -> None:
        relay.reset()

    async def forget() -> None:
        relay.forget()

    async def crash() -> None:
        await own.kill()

    async def compact() -> None:
        async with unreachable(relay):
            await own.compact((await client.list(kinds.CONFIGMAPS, limit=1)).resource_version)

    async def kill() -> None:
        await collector.kill()
        await collector.start()

    async def restore() -> None:
        copy = own.plane.etcd_data.with_name("copy")
        async with unreachable(relay), own.stopped():
            await asyncio.to_thread(shutil.copytree, own.plane.etcd_data, copy)
        await asyncio.sleep(0.5)
        traffic.era += 1
        async with unreachable(relay), own.stopped():
            await asyncio.to_thread(shutil.rmtree, own.plane.etcd_data)
            copy.rename(own.plane.etcd_data)
        traffic.era += 1

    everything: list[Callable[[], Awaitable[None]]] = [cut, kill, compact, crash, restore]
    while everything or time.monotonic() < until:
        act = everything.pop(0) if everything else random.choice([cut, forget, kill, compact, crash])  # noqa: S311
        await act()
        traffic.acts[act.__name__] += 1
        # Long enough for the index to serve reads again before the next fault.
        await eventually(partial(traffic.has_served, traffic.served + 20), "reads from the index", timeout=180)
    traffic.over = True


async def wait_equal(client: Client, reads: KubernetesReads, *, timeout: float = 180.0) -> None:
    """Waits until the index has every byte that the server has."""

    async def equal() -> bool:
        theirs = (await client.request("GET", kinds.CONFIGMAPS.path())).body
        ours = b""
        with suppress(PassThrough):
            async with reads.answer(ReadRequest(CLUSTER, kinds.CONFIGMAPS, {}, "judge")) as reply:
                ours = b"".join([chunk async for chunk in reply.body])
        # The revisions of the two may differ if only other kinds have changed in between.
        return ours != b"" and ours.partition(b'"items":')[2] == theirs.partition(b'"items":')[2]

    await eventually(equal, "the index being what the server is", timeout=timeout)


async def test_soak(own: OwnCluster, tmp_path: Path, record_testsuite_property: Callable[[str, object], None]) -> None:
    root, kubeconfig = tmp_path / "index", tmp_path / "kubeconfig"
    async with relay_to("127.0.0.1", own.plane.ports["kube-apiserver"]) as relay:
        far = msgspec.structs.replace(own.connection, server=f"https://{relay.address}", tls_server_name="127.0.0.1")
        kubeconfig.write_bytes(far.to_kubeconfig(name="soak"))
        assert Connection.from_kubeconfig(kubeconfig) == far
        collector = CollectorProcess(root, kubeconfig, CLUSTER, FAST)
        index, writes = SqliteIndex(root), SqliteWriteLog(root)
        reads = KubernetesReads(CurrentIndex(index, writes, max_age=5.0), PageTokens(b"k" * 32))
        async with Client(own.connection, timeout=60) as client:
            await collector.start()
            try:
                await wait_equal(client, reads)
                traffic = Traffic(client, reads, writes)
                until = time.monotonic() + SECONDS
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(misfortune(own, relay, collector, client, traffic, until))
                    tasks.create_task(traffic.watch_revisions(index))
                    for number in range(WRITERS):
                        tasks.create_task(traffic.write(f"writer-{number}"))
                await wait_equal(client, reads)
            finally:
                await collector.kill()
        index.close()
        writes.close()
    assert len(traffic.lists) > 3
    record_testsuite_property(
        "soak", {"served": traffic.served, "passed": traffic.passed, "lists": len(traffic.lists), **traffic.acts}
    )
