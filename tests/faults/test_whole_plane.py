"""A whole plane of which every process is killed once.

client-go's informer through the entrance loses and doubles no event, and everything that people do, from the first
sign-in to the last deletion, ends as it should. The module has a plane of its own, because everything in it is killed.
A soak takes the flow undisturbed too, and plays random sequences on such planes (`support.sequences`).
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support import informer as informers
from support.informer import Informer, assert_nothing_twice
from support.kubectl import INSTANCE, proxied
from support.not_yet import NotYet
from support.sequences import kills
from support.sequences.lane import Grant, Lane
from support.sequences.playing import agreed
from support.sequences.running import lanes_of, without_demo
from support.shared_plane import Silent
from support.soak import SOAK
from support.waiting import PATIENCE, eventually
from support.ways_in import WaysIn, ways_in

from kairship.embedded import EmbeddedPlane, Home, plane_processes
from kairship.engine import Engine
from kairship.kube import Client, KubeError, kinds
from kairship.supervisor import daemon

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

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
AGREED_WITHIN = PATIENCE  # client-go pauses for up to a minute after an attempt that failed
MOST_REQUESTS = 80
"""A client that lists again and again makes thousands."""

SHOP = Grant("ann", "editor", "shop")
SHOWN_WITHIN = PATIENCE
"""Seconds after a kill; a few of them otherwise. To ask once may take a minute while a server is down."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPlane]:
    home = Home(tmp_path_factory.mktemp("whole") / "plane")
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lanes(plane: EmbeddedPlane, engine: Engine) -> AsyncIterator[list[Lane]]:
    await without_demo(plane)
    async with lanes_of(plane, engine, 1) as lanes:
        yield lanes


@pytest.mark.parametrize("disturbed", [True, False] if SOAK else [True], ids=["killed", "undisturbed"][: 1 + SOAK])
async def test_the_whole_flow(lanes: list[Lane], engine: Engine, tmp_path: Path, disturbed: bool) -> None:
    lane = lanes[0]

    async def kill(*names: str) -> None:
        for name in names if disturbed else ():
            assert await kills.kill(lane.plane, name), name

    await lane.create()
    await kill(plane_processes.CONTROLLER_MANAGER)
    for member in lane.members:
        await lane.register(member)
    await kill(plane_processes.KPANDA)
    for member in lane.members:
        await lane.join(member)
    await kill(f"instance-{lane.name}/etcd")
    await lane.make_namespace("shop")
    people = [
        await ways_in(lane.plane, engine, tmp_path / who, person, instance=lane.name, member=lane.members[0].name)
        for who, person in lane.persons.items()
    ]
    await lane.grant(SHOP)
    await kill(plane_processes.APISERVER)
    await reach_exactly(people, {"ann": {"shop"}})
    await kill(f"instance-{lane.name}/kube-apiserver", plane_processes.TOKEN_KEEPER)
    await reach_exactly(people, {"ann": {"shop"}})

    await lane.withdraw(SHOP)
    # The change was acknowledged: its receivers must get it, also from a successor of the killed process.
    await kill(plane_processes.GHIPPO)
    await reach_exactly(people, {})

    for member in lane.members:
        await lane.leave(member, keep=False)
    await kill(f"instance-{lane.name}/karmada-controller-manager", plane_processes.KPANDA)
    for member in lane.members:
        await lane.forget(member)
    await lane.delete()
    await kill(plane_processes.CONTROLLER_MANAGER)
    await agreed(lane)


async def reach_exactly(people: list[WaysIn], wanted: dict[str, set[str]]) -> None:
    """Waits until each person reaches exactly the namespaces in `wanted`, by every way into the plane."""

    async def agrees() -> NotYet | bool:
        wrong: list[str] = []
        for ways in people:
            who = ways.person.name.rpartition("-")[2]
            for namespace in ("shop", "default"):
                may = namespace in wanted.get(who, ())
                answers = await ways.answers(namespace)
                wrong.extend(
                    f"{who} in {namespace} by {way}: {says}" for way, says in answers.items() if says is not may
                )
        return NotYet("; ".join(wrong)) if wrong else True

    await eventually(agrees, "the rights of everybody", timeout=SHOWN_WITHIN)
