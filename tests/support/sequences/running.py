"""Plays many sequences on one plane. Each lane takes the next seed when it has finished one."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from kairship.embedded import EmbeddedPlane, demo
from kairship.engine import Engine
from kairship.kube import Client
from support.entrance import BASE
from support.entrance_process import entrance_of
from support.member_clusters import MemberCluster
from support.people import People
from support.sequences.lane import Lane, lane_of
from support.sequences.playing import Played, play, recovers
from support.sequences.retrying_client import RetryingClient

LENGTH = 12
CLUSTERS = 2
"""Clusters of each lane. The sequence of a seed depends on the number."""
_IDLE = ("kube-scheduler", "kwok")
"""Processes of a cluster that are stopped, because no pods have to run there."""


@dataclass
class Run:
    played: list[Played] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Played]:
        return [each for each in self.played if each.failure]


@asynccontextmanager
async def lanes_of(plane: EmbeddedPlane, engine: Engine, count: int) -> AsyncIterator[list[Lane]]:
    clusters = [[MemberCluster(plane, engine) for _ in range(CLUSTERS)] for _ in range(count)]
    every = [cluster for some in clusters for cluster in some]
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(Client(await plane.global_connection(), timeout=10))
        admin = await stack.enter_async_context(entrance_of(plane))
        people = People(admin)
        try:
            for cluster in every:
                await cluster.start()
                await plane.supervisor.stop(*(f"{cluster.group}/{name}" for name in _IDLE))
            yield [await stack.enter_async_context(lane_of(plane, world, people, some)) for some in clusters]
        finally:
            for cluster in every:
                await cluster.remove()


async def without_demo(plane: EmbeddedPlane) -> None:
    """Deletes the instance that `up` has created."""
    async with entrance_of(plane) as admin:
        await RetryingClient(admin).ask("DELETE", f"{BASE}/instances/{demo.INSTANCE}")


async def run(
    lanes: Sequence[Lane],
    seeds: Iterator[int],
    *,
    length: int = LENGTH,
    on_played: Callable[[Run, Played], None] = lambda _, __: None,
) -> Run:
    """Plays all seeds. After a failure its lane is used again only if it can be cleared."""
    result, began = Run(), time.monotonic()

    async def serve(lane: Lane) -> None:
        for seed in seeds:
            played = await play(lane, seed, length)
            result.played.append(played)
            result.seconds = time.monotonic() - began
            on_played(result, played)
            if played.failure and not await recovers(lane):
                return

    async with asyncio.TaskGroup() as tasks:
        for lane in lanes:
            tasks.create_task(serve(lane))
    return result
