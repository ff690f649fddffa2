"""A cluster with very many kinds: all are collected within bounds, and requests are answered meanwhile.

The bounds apply to each kind. There are thirty kinds in `make test`, and five hundred in `make soak`.
"""

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.collector_process import CollectorProcess
from support.not_yet import NotYet
from support.own_cluster import OwnCluster, own_cluster
from support.soak import SOAK
from support.waiting import eventually

from kairship.engine import Engine
from kairship.index import NoSuchClusterError, kind_name
from kairship.index.sqlite import SqliteIndex
from kairship.kpanda.collector import CollectorSettings
from kairship.kpanda.collector.cluster_collector import NEVER
from kairship.kube import Client, Resource, kinds

KINDS = 500 if SOAK else 30
GROUPS = 50
AT_ONCE = 8
GROUP = "crowd.kairship.test"
MOST_KB_MORE = 300
"""The memory of each kind: its watch, and nothing that grows."""
MOST_ATTEMPTS = 3
"""The lists of each kind: one, and another one if the server has defined the kind and does not serve it yet."""

PATIENCE = 600

pytestmark = pytest.mark.timeout(PATIENCE)


@pytest.fixture(scope="module")
def own(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    with own_cluster(tmp_path_factory.mktemp("own"), engine) as cluster:
        yield cluster


def group_of(number: int) -> str:
    return f"g{number % GROUPS}.{GROUP}"


def definition(number: int) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {
        "plural": f"things{number}",
        "singular": f"thing{number}",
        "kind": f"Thing{number}",
        "listKind": f"Thing{number}List",
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things{number}.{group_of(number)}"},
        "spec": {"group": group_of(number), "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def define_all(client: Client) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def define(number: int) -> None:
        async with turns:
            await client.create(kinds.CRDS, definition(number), timeout=60)

    async with asyncio.TaskGroup() as tasks:
        for number in range(KINDS):
            tasks.create_task(define(number))


async def followed(index: SqliteIndex) -> set[str]:
    try:
        return {part.resource.plural for part in await index.partitions("it") if part.live}
    except NoSuchClusterError:
        return set()


async def until_followed(index: SqliteIndex, wanted: set[str]) -> None:
    async def all_followed() -> NotYet | bool:
        missing = wanted - await followed(index)
        return NotYet(f"{len(missing)} are missing, as {sorted(missing)[:3]}") if missing else True

    await eventually(all_followed, "the kinds being followed", timeout=PATIENCE - 60)


async def collected_kinds(client: Client) -> set[str]:
    """The plurals of all kinds that the cluster has and that are collected. Events have an index of their own."""
    served = (await client.discovery.catalogue()).resources
    resources = [each.resource for each in served if {"list", "watch"} <= each.verbs]
    return {each.plural for each in resources if kind_name(each) not in {*NEVER, "events"}}


async def until_there(index: SqliteIndex, kind: str, key: str) -> None:
    async def is_there() -> bool:
        return (await index.get("it", kind, key))[1] is not None

    await eventually(is_there, f"{key} in the index")


async def create_as_soon_as_served(client: Client, resource: Resource, name: str) -> None:
    # As long as the storage of the kind is being created, the server answers TooManyRequests.
    create = partial(client.create, resource, {"metadata": {"name": name}}, namespace="default")
    await eventually(create, f"the creation of {name}")


async def lists_and_ended_watches(client: Client) -> int:
    """The requests for the kinds of the crowd, as the server has counted them."""
    text = (await client.request("GET", "/metrics", timeout=30)).body.decode()
    counted = re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$", text, re.MULTILINE)
    return sum(
        int(float(count))
        for labels, count in counted
        if f'.{GROUP}"' in labels and ('verb="LIST"' in labels or 'verb="WATCH"' in labels)
    )


async def test_very_many_kinds(own: OwnCluster, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(own.connection.to_kubeconfig(name="own"))
    collector = CollectorProcess(tmp_path / "index", kubeconfig, "it", CollectorSettings())
    index = SqliteIndex(tmp_path / "index")
    async with Client(own.connection) as client:
        await collector.start()
        try:
            # All of them, or the memory of those that follow later would count as memory of the crowd.
            await until_followed(index, await collected_kinds(client))
            memory = collector.process.memory_info().rss
            await define_all(client)
            await until_followed(index, {f"things{number}" for number in range(KINDS)})

            assert (collector.process.memory_info().rss - memory) / 1e3 < KINDS * MOST_KB_MORE
            # Each watch has a connection; lists and discovery share the few of the collector's client.
            watched = len(await index.partitions("it"))
            assert len(collector.process.net_connections("tcp")) <= watched + 20

            async def all_counted() -> int:
                # The server counts a request after it has answered it.
                counted = await lists_and_ended_watches(client)
                return counted if counted >= KINDS else 0

            assert await eventually(all_counted, "the server having counted every list") <= KINDS * MOST_ATTEMPTS

            last = Resource.of(
                f"{group_of(KINDS - 1)}/v1", f"things{KINDS - 1}", kind=f"Thing{KINDS - 1}", namespaced=True
            )
            await create_as_soon_as_served(client, last, "one")
            await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "among-them"}}, namespace="default")
            await until_there(index, "configmaps", "default/among-them")
            await until_there(index, f"things{KINDS - 1}.{group_of(KINDS - 1)}", "default/one")
        finally:
            await collector.kill()
            index.close()
