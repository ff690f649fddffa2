"""Random sequences of what people and faults do, against a model: in the end the plane holds exactly what it says.

A sequence is made of its seed, so one that fails can be played again: `KAIRSHIP_SEED=7`. One short sequence in `make
test`, `KAIRSHIP_SEQUENCES` of them in `make soak`. Everything is real: an instance, two clusters that join, leave, stop
and return, and controller-managers that die at any moment.
"""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress

import pytest
from support.controller_model import Member, Model, model_of
from support.managed import ManagedInstance, World, is_now
from support.member_clusters import MemberCluster, member_cluster

from kairship.access import Role
from kairship.controllers.global_cluster import MEMBERSHIP
from kairship.controllers.process import ControllerManager
from kairship.kube import Client
from kairship.resources import InstanceCondition

SOAK = "KAIRSHIP_SOAK" in os.environ
SEEDS = [int(os.environ["KAIRSHIP_SEED"])] if "KAIRSHIP_SEED" in os.environ else range(200 if SOAK else 1)
LENGTH = 20 if SOAK else 10
SETTLED_WITHIN = 150.0

Act = Callable[[], Awaitable[None]]


@pytest.fixture(scope="module")
def clusters(world: World) -> Iterator[list[MemberCluster]]:
    with ExitStack() as stack:
        yield [stack.enter_context(member_cluster(world.plane, world.engine)) for _ in range(2)]


class Mortal:
    """A controller-manager that can be killed: at whatever it is at, without a word."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(ControllerManager(self._world.settings(), self._world.engine).run())

    async def kill(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running

    async def replace(self) -> None:
        await self.kill()
        self.start()


@asynccontextmanager
async def running(world: World) -> AsyncIterator[Mortal]:
    mortal = Mortal(world)
    mortal.start()
    try:
        yield mortal
    finally:
        await mortal.kill()


def choices(chance: random.Random, model: Model, mortal: Mortal) -> dict[str, Act]:
    """What could be done next, each by its name."""
    found: dict[str, Act] = {"kill the controller-manager": mortal.replace}
    for member in model.members:
        found |= _about(chance, model, member)
    who, role = chance.choice(["ann", "ben"]), chance.choice([Role.VIEWER, Role.EDITOR, Role.ADMIN])
    namespace = {"ann": "", "ben": "default"}[who]
    if who in model.held:
        found[f"withdraw what {who} has"] = lambda: model.withdraw(who)
    found[f"make {who} {role.id}"] = lambda: model.grant(who, role, namespace)
    return found


def _about(chance: random.Random, model: Model, member: Member) -> dict[str, Act]:
    stage, keep, number = f"s{chance.randrange(1000)}", chance.random() < 0.5, model.members.index(member)
    found: dict[str, Act] = {
        f"label {number}": lambda: model.edit(member, stage),
        f"rotate {number}": lambda: model.rotate(member),
    }
    if member.joined:
        found[f"{number} leaves"] = lambda: model.leave(member, keep=keep)
    elif member.alive:
        found[f"{number} joins"] = lambda: model.join(member)
    if member.alive:
        found[f"stop {number}"] = lambda: model.stop(member)
    else:
        found[f"start {number}"] = lambda: model.start(member)
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
async def test_the_plane_holds_what_the_model_says(
    managed: ManagedInstance, clusters: list[MemberCluster], seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - to be repeated
    world, done = managed.world, []
    async with Client(world.connection) as client, running(world) as mortal:
        managed.client = client
        if not managed.uid:
            await managed.create()
        await managed.until(is_now(InstanceCondition.REACHABLE, "True"))
        async with model_of(managed, clusters) as model:
            await model.register()
            for _ in range(LENGTH):
                await settle_departures(model)
                possible = choices(chance, model, mortal)
                names = sorted(possible)
                # Most of what can happen happens to clusters that have joined.
                [name] = chance.choices(names, weights=[6 if each.endswith("joins") else 1 for each in names])
                done.append(name)
                await possible[name]()
            for member in model.members:
                if not member.alive:
                    await model.start(member)
            await converged(model, done)
            # The next sequence begins with nothing.
            for member in model.members:
                if member.joined:
                    await model.leave(member, keep=False)
            for who in list(model.held):
                await model.withdraw(who)
            await converged(model, [*done, "everybody leaves"])


async def settle_departures(model: Model) -> None:
    """A name can be used again when its membership is gone."""
    deadline = time.monotonic() + SETTLED_WITHIN
    for member in model.members:
        while not member.joined and await exists(model.client, member.name):
            assert time.monotonic() < deadline, f"{member.name} does not leave"
            await asyncio.sleep(0.1)


async def exists(client: Client, membership: str) -> bool:
    page = await client.list(MEMBERSHIP, field_selector=f"metadata.name={membership}")
    return bool(page.items)


async def converged(model: Model, done: list[str]) -> None:
    deadline = time.monotonic() + SETTLED_WITHIN
    while deviations := await model.deviations():
        assert time.monotonic() < deadline, f"after {done}: {deviations}"
        await asyncio.sleep(0.5)
