"""Compares reads from the index with the same reads from the kube-apiserver, in one run, with HTTPS and authentication.

    python benchmarks/index.py [--objects 10000]

Both sides have the same objects and return JSON with the same items. Times are those of one client; server CPU is what
the answering process used per request. Targets at 10,000 Deployments: get at most half of the apiserver's p50, lists of
a namespace and by a rare label 4 times faster, the full list 2.5 times, WatchList 5 times; server CPU 4 times less;
create to visible 10 ms.
"""

import argparse
import asyncio
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
import report
from lean_client import Answer, LeanClient, measure
from processes.index_process import Settings

from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.embedded import clusters
from kairship.engine import Engine
from kairship.index.sqlite import SqliteIndex
from kairship.kube import Client, kinds, ssl_context
from kairship.supervisor import SupervisorClient, daemon

IN_NAMESPACE = 500
PATH = "/apis/apps/v1"
WATCH_LIST = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
END = b"initial-events-end"


def deployment(number: int) -> dict[str, Any]:
    """A Deployment of about 3 KB as the server stores it."""
    labels = {"app": f"app-{number % 1000}", "rare": str(number % 100), "team": f"team-{number % 7}"}
    variables = [{"name": f"SETTING_{index}", "value": "x" * 40} for index in range(20)]
    container = {"name": "main", "image": f"registry.example/app-{number % 1000}:1.{number % 50}", "env": variables}
    return {
        "metadata": {"name": f"app-{number:06}", "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": labels["app"]}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


class Side:
    """One of the two servers that are compared."""

    def __init__(self, url: str, tls: ssl.SSLContext, process: psutil.Process, **headers: str) -> None:
        self._client = LeanClient(url, tls, {"Accept": "application/json", **headers})
        self._process = process

    def read(self, path: str, *, keep: bool = False) -> Answer:
        answer = self._client.get(path, keep=keep)
        assert answer.status == 200, path
        assert "passed-through" not in answer.headers, path
        return answer

    def watch_list(self, *, keep: bool = False) -> Answer:
        """Reads a watch until the end of its initial events."""
        return self._client.get(f"{PATH}/deployments?{WATCH_LIST}", until=END, keep=keep)

    def measure(self, work: Callable[..., Answer], times: int) -> dict[str, float]:
        return measure(work, times, self._process)

    def is_there(self, path: str) -> bool:
        return self._client.get(path).status == 200

    def close(self) -> None:
        self._client.close()


@asynccontextmanager
async def cluster(root: Path, engine: Engine) -> AsyncIterator[tuple[ControlPlane, psutil.Process]]:
    await daemon.start(root)
    try:
        supervisor = SupervisorClient(root)
        plane = await clusters.control_plane(
            supervisor, root / "planes", kind=PlaneKind.GLOBAL, name="bench", uid="bench"
        )
        await asyncio.to_thread(kubernetes.ensure_certificates, plane)
        await supervisor.put(kubernetes.etcd(plane, engine), kubernetes.kube_apiserver(plane, engine))
        await supervisor.wait_ready(plane.group, timeout=120)
        (status,) = await supervisor.status(plane.process("kube-apiserver"))
        assert status.pid is not None
        yield plane, psutil.Process(status.pid)
    finally:
        await daemon.stop(root)


async def create(client: Client, count: int) -> None:
    for number in range(0, count, IN_NAMESPACE):
        await client.create(kinds.NAMESPACES, {"metadata": {"name": f"ns-{number // IN_NAMESPACE}"}})
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            namespace = f"ns-{number // IN_NAMESPACE}"
            await client.create(kinds.DEPLOYMENTS, deployment(number), namespace=namespace)

    await asyncio.gather(*(some() for _ in range(12)))


async def until_synced(root: Path, cluster_uid: str, kind: str = "deployments.apps") -> None:
    index = SqliteIndex(root)
    while True:
        try:
            async with index.snapshot(cluster_uid) as snapshot:
                partition = await snapshot.partition(kind)
            if partition is not None and partition.live:
                index.close()
                return
        except Exception as error:  # noqa: BLE001 - any error means that it is not ready yet
            del error
        await asyncio.sleep(0.02)


async def visible(client: Client, side: Side, times: int) -> float:
    """The p50 of the milliseconds from the reply to a creation until the object can be read from the index."""
    seconds = []
    for number in range(times):
        await client.create(kinds.DEPLOYMENTS, deployment(900_000 + number), namespace="ns-0")
        began = time.perf_counter()
        while not side.is_there(f"{PATH}/namespaces/ns-0/deployments/app-{900_000 + number:06}"):
            pass
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1e3


async def run(count: int) -> None:
    engine = await Engine.find()
    with tempfile.TemporaryDirectory(prefix="kairship-bench-", ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        async with cluster(root / "plane", engine) as (plane, apiserver), Client(plane.connection()) as client:
            await create(client, count)
            await compare(root, plane, apiserver, client, count)


async def compare(root: Path, plane: ControlPlane, apiserver: psutil.Process, client: Client, count: int) -> None:
    kubeconfig, given = root / "kubeconfig", root / "settings.json"
    kubeconfig.write_bytes(plane.connection().to_kubeconfig(name="bench"))
    serving = plane.pki.pair("serving")
    port = plane.ports["kube-apiserver"] + 7
    stored = root / "index"
    settings = Settings(str(kubeconfig), str(stored), str(serving.cert), str(serving.key), "bench-token", port)
    given.write_bytes(msgspec.json.encode(settings))
    program = str(Path(__file__).parent / "processes" / "index_process.py")
    began = time.perf_counter()
    collector = await asyncio.create_subprocess_exec(sys.executable, program, "collect", str(given))
    server = None
    try:
        await until_synced(stored, settings.clusters[0])
        synced = time.perf_counter() - began
        server = await asyncio.create_subprocess_exec(sys.executable, program, "serve", str(given))
        connection = plane.connection()
        tls = ssl_context(connection)
        url = f"https://127.0.0.1:{port}"
        sides = {
            "index": Side(url, tls, psutil.Process(server.pid), Authorization=f"Bearer {settings.token}"),
            # As kubectl asks, which accepts compression of large replies; then as our own clients ask.
            "apiserver": Side(connection.server, tls, apiserver, **{"Accept-Encoding": "gzip"}),
            "apiserver, not compressed": Side(connection.server, tls, apiserver),
        }
        await until_served(sides["index"])
        figures = {name: read_everything(side) for name, side in sides.items()}
        shown = await visible(client, sides["index"], 50)
        for side in sides.values():
            side.close()
        other = {
            "first_sync_s": synced,
            "create_to_visible_p50_ms": shown,
            "collector_rss_mb": psutil.Process(collector.pid).memory_info().rss / 1e6,
            "server_rss_mb": psutil.Process(server.pid).memory_info().rss / 1e6,
            "disk_mb": sum(file.stat().st_size for file in stored.rglob("*.db*")) / 1e6,
        }
        tell(count, figures, other)
    finally:
        for process in filter(None, (server, collector)):
            process.terminate()
            await process.wait()


async def until_served(side: Side) -> None:
    while True:
        try:
            side.read(f"{PATH}/namespaces/ns-0/deployments/app-000001")
            return
        except OSError:
            side.close()
            await asyncio.sleep(0.05)


def read_everything(side: Side) -> dict[str, dict[str, float]]:
    def reading(path: str) -> Callable[..., Answer]:
        return partial(side.read, PATH + path)

    return {
        "get": side.measure(reading("/namespaces/ns-1/deployments/app-000600"), 1000),
        "list a namespace": side.measure(reading("/namespaces/ns-1/deployments"), 50),
        "list by a rare label": side.measure(reading("/deployments?labelSelector=rare%3D7"), 50),
        "list all": side.measure(reading("/deployments"), 5),
        "WatchList": side.measure(side.watch_list, 5),
    }


def tell(count: int, figures: dict[str, dict[str, dict[str, float]]], other: dict[str, float]) -> None:
    ours, theirs = figures["index"], figures["apiserver"]
    ratios = {f"{name}: time": theirs[name]["p50_ms"] / ours[name]["p50_ms"] for name in ours}
    ratios |= {f"{name}: CPU": theirs[name]["cpu_ms"] / max(ours[name]["cpu_ms"], 0.01) for name in ours}
    rows = [
        [
            name,
            *(f"{side[name]['p50_ms']:.2f}" for side in (ours, theirs)),
            f"{ratios[f'{name}: time']:.1f}",
            *(f"{side[name]['cpu_ms']:.2f}" for side in (ours, theirs)),
            f"{ratios[f'{name}: CPU']:.1f}",
            f"{ours[name]['bytes'] / theirs[name]['bytes']:.3f}",
        ]
        for name in ours
    ]
    columns = ["", "index p50 ms", "apiserver", "times faster", "index CPU ms", "apiserver", "times less", "bytes"]
    report.table(f"{count} Deployments", columns, rows)
    report.table("", ["", "figure"], [[name, f"{value:.2f}"] for name, value in other.items()])
    name = "index" if count == 10_000 else f"index_{count}"
    report.write(name, figures={"objects": count, **figures, **other}, ratios=ratios)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    asyncio.run(run(parser.parse_args().objects))
