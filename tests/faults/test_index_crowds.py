"""A cluster with very many kinds: all are followed, and what is asked for meanwhile is answered.

Forty kinds in `make test`, five hundred in `make soak`.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.own_cluster import OwnCluster, own_cluster

from kairship.engine import Engine
from kairship.index import NoSuchClusterError
from kairship.index.sqlite import SqliteIndex, SqliteWriter
from kairship.kpanda.collector import ClusterStores, Collector, CollectorSettings
from kairship.kube import Client, Resource, kinds
from kairship.reconcile import SystemClock

SOAK = "KAIRSHIP_SOAK" in os.environ
KINDS = 500 if SOAK else 40
GROUP = "crowd.kairship.test"
MOST_MB_MORE = 1 if SOAK else 2
"""For each kind: its watch, and nothing that grows."""

PATIENCE = 1200 if SOAK else 240

pytestmark = pytest.mark.timeout(PATIENCE)


@pytest.fixture(scope="module")
def own(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    with own_cluster(tmp_path_factory.mktemp("own"), engine) as cluster:
        yield cluster


def definition(number: int) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": f"things{number}", "singular": f"thing{number}", "kind": f"Thing{number}"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things{number}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def followed(index: SqliteIndex) -> set[str]:
    try:
        return {part.resource.plural for part in await index.partitions("it") if part.live}
    except NoSuchClusterError:
        return set()


async def until_followed(index: SqliteIndex, wanted: set[str]) -> None:
    async with asyncio.timeout(PATIENCE - 60):
        while wanted - await followed(index):  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.2)


async def until_there(index: SqliteIndex, kind: str, key: str) -> None:
    async with asyncio.timeout(20):
        while (await index.get("it", kind, key))[1] is None:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.05)


async def test_very_many_kinds(own: OwnCluster, tmp_path: Path) -> None:
    async def open_stores(cluster: str) -> ClusterStores:
        return ClusterStores(
            await SqliteWriter.open(tmp_path, cluster), await SqliteWriter.open(tmp_path / "events", cluster)
        )

    index = SqliteIndex(tmp_path)
    settings = CollectorSettings(discovery_interval=5.0)
    async with Client(own.connection) as client, Collector(open_stores, clock=SystemClock(), settings=settings) as it:
        it.follow("it", lambda: Client(own.connection))
        await until_followed(index, {"configmaps", "pods"})
        before = psutil.Process().memory_info().rss / 1e6
        for number in range(KINDS):
            await client.apply_object(definition(number), field_manager="test")
        await until_followed(index, {f"things{number}" for number in range(KINDS)})
        assert psutil.Process().memory_info().rss / 1e6 - before < KINDS * MOST_MB_MORE
        last = Resource.of(f"{GROUP}/v1", f"things{KINDS - 1}", kind=f"Thing{KINDS - 1}", namespaced=True)
        await client.create(last, {"metadata": {"name": "one"}}, namespace="default")
        await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "among-them"}}, namespace="default")
        await until_there(index, "configmaps", "default/among-them")
        await until_there(index, f"things{KINDS - 1}.{GROUP}", "default/one")
    index.close()
