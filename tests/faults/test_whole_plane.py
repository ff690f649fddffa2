"""A whole plane from the first sign-in to the last deletion, undisturbed, with every process killed, and at random.

One plane of its own for the module, because everything in it is killed. A sequence that fails is played again with
`PYTHONPATH=tests .venv/bin/python -m support.sequences --seed N`; `make soak` plays many.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.people import within
from support.sequences import kills
from support.sequences.lane import Grant, Lane
from support.sequences.playing import agreed
from support.sequences.running import lanes_of, run, without_demo
from support.shared_plane import Silent
from support.ways_in import WaysIn, ways_in

from kairship.embedded import EmbeddedPlane, Home, roles
from kairship.engine import Engine
from kairship.supervisor import daemon

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

SEEDS = (2, 3)
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


@pytest.mark.parametrize("disturbed", [False, True], ids=["undisturbed", "killed"])
async def test_the_whole_flow(lanes: list[Lane], engine: Engine, tmp_path: Path, disturbed: bool) -> None:
    lane = lanes[0]

    async def kill(*names: str) -> None:
        for name in names if disturbed else ():
            assert await kills.kill(lane.plane, name), name

    await lane.create()
    await kill(roles.CONTROLLER_MANAGER)
    for member in lane.members:
        await lane.register(member)
    await kill(roles.KPANDA)
    for member in lane.members:
        await lane.join(member)
    await kill(f"instance-{lane.name}/etcd")
    await lane.make_namespace("shop")
    people = [
        await ways_in(lane.plane, engine, tmp_path / who, person, instance=lane.name, member=lane.members[0].name)
        for who, person in lane.persons.items()
    ]
    await lane.grant(SHOP)
    await kill(roles.APISERVER)
    await reach_exactly(people, {"ann": {"shop"}})
    await kill(f"instance-{lane.name}/kube-apiserver", roles.TOKEN_KEEPER)
    await reach_exactly(people, {"ann": {"shop"}})

    await lane.withdraw(SHOP)
    # It was acknowledged: whoever was to be told of it must be told, also by a successor.
    await kill(roles.GHIPPO)
    await reach_exactly(people, {})

    for member in lane.members:
        await lane.leave(member, keep=False)
    await kill(f"instance-{lane.name}/karmada-controller-manager", roles.KPANDA)
    for member in lane.members:
        await lane.forget(member)
    await lane.delete()
    await kill(roles.CONTROLLER_MANAGER)
    await agreed(lane)


async def reach_exactly(people: list[WaysIn], wanted: dict[str, set[str]]) -> None:
    """By every way in, and nothing else: `wanted` are the namespaces that each of them reaches."""
    seen: list[str] = []

    async def agrees() -> bool:
        seen.clear()
        for ways in people:
            who = ways.person.name.rpartition("-")[2]
            for namespace in ("shop", "default"):
                may = namespace in wanted.get(who, ())
                answers = await ways.answers(namespace)
                seen.extend(
                    f"{who} in {namespace} by {way}: {says}" for way, says in answers.items() if says is not may
                )
        return not seen

    try:
        await within(agrees, seconds=SHOWN_WITHIN)
    except AssertionError as error:
        raise AssertionError(f"{error}: {'; '.join(seen)}") from None


async def test_random_sequences_leave_what_the_model_says(lanes: list[Lane]) -> None:
    result = await run(lanes, iter(SEEDS))
    assert not result.failures, [
        f"play it again with --seed {each.seed}: {each.failure}, after {each.steps}" for each in result.failures
    ]
    assert len(result.played) == len(SEEDS)
