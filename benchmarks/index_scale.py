"""Measures the index with 250,000 mixed objects in several clusters: the collector's cost, and the speed of searches.

    python benchmarks/index_scale.py [--objects 250000] [--clusters 5]

One API server has a share of the objects, and is collected under as many names as there are clusters: for the collector
and the index these are separate clusters, with their own lists, watches and files. The collector's memory is read after
the first cluster and after the last. Searches cover all clusters, over HTTPS with authentication.
"""

import argparse
import asyncio
import itertools
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
import report
from index import Side, cluster, until_synced
from processes.index_process import Settings

from kairship.controlplane import ControlPlane
from kairship.engine import Engine
from kairship.kube import Client, Resource, kinds, ssl_context

WRITERS = 16
REPEATED = 7
APPS = (
    *("web", "api", "frontend", "checkout", "payments", "search", "cart", "auth", "worker", "redis"),
    *("postgres", "nginx", "gateway", "billing", "mail"),
)
SEARCHES = (
    *("w", "we", "web", "checkout", "payments nginx", "nginx:1.7", "team-7", "pods web", "deploy", "po"),
    *("1f3a", "cart-12", "web 1f", "app=redis", "frontend checkout 77", "team-7 pods redis", "nothing-like-it"),
)
KINDS: tuple[tuple[Resource, float], ...] = (
    (kinds.PODS, 0.5),
    (kinds.CONFIGMAPS, 0.25),
    (kinds.DEPLOYMENTS, 0.15),
    (kinds.SERVICES, 0.1),
)


def manifest(resource: Resource, number: int, chance: random.Random) -> dict[str, Any]:
    """An object of one to three KB as the server stores it."""
    app = chance.choice(APPS)
    labels = {"app": app, "team": f"team-{chance.randrange(30)}", "pod-template-hash": f"{chance.randrange(5000):x}"}
    name = f"{app}-{chance.choice(APPS)}-{number:x}-{chance.randrange(16**5):05x}"
    image = f"registry.example/{app}:1.{chance.randrange(50)}"
    pod = {"containers": [{"name": "main", "image": image, "env": [{"name": "SETTING", "value": "x" * 300}]}]}
    metadata = {"name": name, "labels": labels}
    if resource == kinds.PODS:
        return {"metadata": metadata, "spec": pod}
    if resource == kinds.DEPLOYMENTS:
        template = {"metadata": {"labels": labels}, "spec": pod}
        selector = {"matchLabels": {"app": app}}
        return {"metadata": metadata, "spec": {"replicas": 0, "selector": selector, "template": template}}
    if resource == kinds.SERVICES:
        return {"metadata": metadata, "spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 80}]}}
    return {"metadata": metadata, "data": {"settings": "x" * 1200}}


async def create(client: Client, count: int) -> None:
    chance = random.Random(1)  # noqa: S311 - the same objects every time
    names = [f"{app}-{number}" for app in APPS for number in range(4)]
    for name in names:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=name)
    wanted = iter(
        [
            (resource, manifest(resource, number, chance), chance.choice(names))
            for resource, share in KINDS
            for number in range(int(count * share))
        ]
    )

    async def some() -> None:
        for resource, obj, namespace in wanted:
            await client.create(resource, obj, namespace=namespace)

    await asyncio.gather(*(some() for _ in range(WRITERS)))


async def run(count: int, clusters: int) -> None:
    engine = await Engine.find()
    with tempfile.TemporaryDirectory(prefix="kairship-bench-", ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        async with cluster(root / "plane", engine) as (plane, _), Client(plane.connection()) as client:
            began = time.perf_counter()
            await create(client, count // clusters)
            print(f"{count // clusters} objects created in {time.perf_counter() - began:.0f} s")
            await measure(root, plane, count, [f"cluster-{number}" for number in range(clusters)])


async def measure(root: Path, plane: ControlPlane, count: int, clusters: list[str]) -> None:
    kubeconfig, given, stored = root / "kubeconfig", root / "settings.json", root / "index"
    kubeconfig.write_bytes(plane.connection().to_kubeconfig(name="bench"))
    serving, port = plane.pki.pair("serving"), plane.ports["kube-apiserver"] + 7
    settings = Settings(
        *(str(kubeconfig), str(stored), str(serving.cert), str(serving.key), "bench-token", port),
        clusters=tuple(clusters),
    )
    given.write_bytes(msgspec.json.encode(settings))
    program = str(Path(__file__).parent / "processes" / "index_process.py")
    processes = []
    try:
        began, memory = time.perf_counter(), []
        collector = await asyncio.create_subprocess_exec(sys.executable, program, "collect", str(given))
        processes.append(collector)
        watched = psutil.Process(collector.pid)
        # One after the other, to see what each cluster adds.
        for name, (resource, _) in itertools.product(clusters, reversed(KINDS)):
            kind = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
            await until_synced(stored, name, kind)
            if resource == KINDS[0][0]:
                memory.append(watched.memory_info().rss / 1e6)
        synced = time.perf_counter() - began
        server = await asyncio.create_subprocess_exec(sys.executable, program, "serve", str(given))
        processes.append(server)
        side = Side(
            *(f"https://127.0.0.1:{port}", ssl_context(plane.connection()), psutil.Process(server.pid)),
            Authorization=f"Bearer {settings.token}",
        )
        searches = await search(side)
        side.close()
        figures = {
            "objects": count,
            "clusters": len(clusters),
            "first_sync_s": synced,
            "collector_rss_mb_after_each_cluster": [round(size, 1) for size in memory],
            "collector_rss_mb": watched.memory_info().rss / 1e6,
            "server_rss_mb": psutil.Process(server.pid).memory_info().rss / 1e6,
            "disk_mb": sum(file.stat().st_size for file in stored.rglob("*.db*")) / 1e6,
            "searches": searches,
            "slowest_search_p50_ms": max(each["p50_ms"] for each in searches.values()),
            "most_search_cpu_ms": max(each["cpu_ms"] for each in searches.values()),
        }
        rows = [[text, f"{each['p50_ms']:.1f}", f"{each['cpu_ms']:.1f}"] for text, each in searches.items()]
        report.table(f"{count} objects", ["search", "p50 ms", "server CPU ms"], rows)
        report.table("", ["", "figure"], [[name, str(value)] for name, value in figures.items() if name != "searches"])
        report.write("index_scale", figures=figures)
    finally:
        for process in processes:
            process.terminate()
            await process.wait()


async def search(side: Side) -> dict[str, dict[str, float]]:
    """The first page of each search."""
    while True:
        try:
            side.read("/search?q=web")
            break
        except OSError:
            side.close()
            await asyncio.sleep(0.05)
    return {
        text: side.measure(partial(side.read, f"/search?q={text.replace(' ', '%20')}"), REPEATED) for text in SEARCHES
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=250_000)
    parser.add_argument("--clusters", type=int, default=5)
    arguments = parser.parse_args()
    asyncio.run(run(arguments.objects, arguments.clusters))
