"""A whole plane from the first sign-in to the last deletion, with every process killed once.

The module has a plane of its own, because everything in it is killed. A soak takes the flow undisturbed too, and plays
random sequences on such planes (`support.sequences`).
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.not_yet import NotYet
from support.sequences import kills
from support.sequences.lane import Grant, Lane
from support.sequences.playing import agreed
from support.sequences.running import lanes_of, without_demo
from support.shared_plane import Silent
from support.soak import SOAK
from support.waiting import eventually
from support.ways_in import WaysIn, ways_in

from kairship.embedded import EmbeddedPlane, Home, plane_processes
from kairship.engine import Engine
from kairship.supervisor import daemon

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

SHOP = Grant("ann", "editor", "shop")
SHOWN_WITHIN = 90.0  # after a kill; a few seconds otherwise


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lanes(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[Lane]]:
    home = Home(tmp_path_factory.mktemp("whole") / "plane")
    plane = EmbeddedPlane(home, engine)
    try:
        await plane.up(Silent(), [])
        await without_demo(plane)
        async with lanes_of(plane, engine, 1) as lanes:
            yield lanes
    finally:
        await daemon.stop(home.root)


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
