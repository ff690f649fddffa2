"""client-go's informer through the entrance, while every process on its path is killed: no event is lost or doubled.

The module has a plane of its own, because everything in it is killed.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support import informer as informers
from support.informer import Informer, assert_nothing_twice
from support.kubectl import INSTANCE, proxied
from support.sequences import kills
from support.shared_plane import Silent
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane, Home, plane_processes
from kairship.engine import Engine
from kairship.kube import Client, KubeError, kinds
from kairship.supervisor import daemon

pytestmark = pytest.mark.timeout(600)

KILLED = (
    kills.WORKER,
    plane_processes.APISERVER,
    plane_processes.KPANDA,
    plane_processes.GHIPPO,
    plane_processes.CONTROLLER_MANAGER,
    f"instance-{INSTANCE}/kube-apiserver",
    f"instance-{INSTANCE}/etcd",
)
HOME = "default"
AGREED_WITHIN = 90.0
MOST_REQUESTS = 80
"""A client that lists again and again makes thousands."""


@pytest.fixture
async def plane(engine: Engine, tmp_path: Path) -> AsyncIterator[EmbeddedPlane]:
    home = Home(tmp_path / "plane")
    plane = EmbeddedPlane(home, engine)
    try:
        await plane.up(Silent(), [])
        yield plane
    finally:
        await daemon.stop(home.root)


async def test_an_informer_survives_whoever_dies(plane: EmbeddedPlane, tmp_path: Path) -> None:
    program, connection = await asyncio.to_thread(informers.build), await proxied(plane)
    async with (
        Client(await plane.instance_connection(), timeout=5) as direct,
        informers.informer(program, connection, kinds.CONFIGMAPS, tmp_path, namespace=HOME) as informer,
    ):
        await informer.synced()
        for number, name in enumerate(KILLED):
            changing = asyncio.create_task(_change(direct, f"{number}"))
            assert await kills.kill(plane, name), name
            await changing
            what = f"the cache of the informer being current after a kill of {name}"
            await eventually(lambda: _agrees(informer, direct), what, timeout=AGREED_WITHIN)
        assert_nothing_twice(informer.events)
    logged = await plane.supervisor.logs(plane_processes.APISERVER, lines=5000)
    assert sum(f"/namespaces/{HOME}/configmaps" in line for line in logged) < MOST_REQUESTS


async def _change(client: Client, text: str) -> None:
    for number in range(60):
        name = f"c{number % 20}"
        try:
            if number % 7 == 6:
                await client.delete(kinds.CONFIGMAPS, name, namespace=HOME, missing_ok=True)
            else:
                manifest = {"metadata": {"name": name}, "data": {"text": f"{text}.{number}"}}
                await client.apply(kinds.CONFIGMAPS, manifest, namespace=HOME, field_manager="test")
        except KubeError:
            await asyncio.sleep(0.2)  # it is being killed


async def _agrees(informer: Informer, client: Client) -> bool:
    try:
        page = await client.list(kinds.CONFIGMAPS, namespace=HOME)
    except KubeError:
        return False
    truth = {f"{HOME}/{one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in page.items}
    return await informer.state() == truth
