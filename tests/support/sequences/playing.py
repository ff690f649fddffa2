"""Plays one sequence. Its steps depend only on the seed and the model, so that it can be repeated."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import aiohttp

from kairship.kube import KubeError
from kairship.supervisor import SupervisorError
from support.sequences import kills
from support.sequences.lane import GRANTS, Lane, Member
from support.sequences.orphans import orphans
from support.sequences.retrying_client import NotDoneError
from support.sequences.truth import deviations

SETTLED_WITHIN = 180.0
_PAUSE = 0.5

Act = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Step:
    kind: str
    about: str
    act: Act
    weight: float = 1.0


@dataclass
class Played:
    seed: int
    steps: list[tuple[str, str]] = field(default_factory=list)
    """The kind and the object of each step."""
    settled: float = 0.0
    """Seconds from the last step until the plane agreed with the model."""
    cleared: float = 0.0
    """Seconds until they agreed again after everything was removed."""
    seconds: float = 0.0
    failure: str = ""

    @property
    def kills(self) -> list[str]:
        return [about for kind, about in self.steps if kind == "kill"]


async def play(lane: Lane, seed: int, length: int) -> Played:
    """Plays a sequence. It begins with at most an instance, and removes everything else at the end."""
    chance = random.Random(seed)  # noqa: S311 - it makes a sequence, not keys
    played, began = Played(seed), time.monotonic()
    try:
        if not lane.uid:
            played.steps.append(("create", ""))
            await lane.create()
        for _ in range(length):
            steps = list(possible(chance, lane))
            [step] = chance.choices(steps, weights=[each.weight for each in steps])
            played.steps.append((step.kind, step.about))
            await step.act()
        await start_all(lane)
        played.settled = await agreed(lane)
        await clear(lane)
        played.cleared = await agreed(lane)
    except NotDoneError as error:
        played.failure = str(error)
    played.seconds = time.monotonic() - began
    return played


def possible(chance: random.Random, lane: Lane) -> Iterator[Step]:
    victim = kills.choose(chance, lane.name)
    yield Step("kill", _without_name(victim, lane), lambda: kills.kill(lane.plane, victim), 2.5)
    for number, member in enumerate(lane.members):
        yield from _about(chance, lane, member, f"member {number}")
    if not lane.uid:
        yield Step("create", "", lane.create, 6)
        return
    alias = f"alias {chance.randrange(1000)}"
    yield Step("edit", "alias", lambda: lane.rename(alias), 0.7)
    if lane.placed:
        yield Step("edit", "remove the workload", lane.remove_workload, 0.5)
    else:
        yield Step("edit", "place a workload", lane.place, 2)
    grant = chance.choice(GRANTS)
    about = f"{grant.who} {grant.role} {grant.namespace}".strip()
    if grant in lane.grants:
        yield Step("unbind", about, lambda: lane.withdraw(grant), 2)
    else:
        yield Step("bind", about, lambda: lane.grant(grant), 2.5)
    if lane.held:
        yield Step("workspace", "lets go", lane.let_go, 0.7)
    else:
        yield Step("workspace", "holds", lane.hold, 0.7)
    if not lane.joined:
        yield Step("delete", "", lane.delete, 0.4)


def _about(chance: random.Random, lane: Lane, member: Member, called: str) -> Iterator[Step]:
    keep, stage = chance.random() < 0.5, f"s{chance.randrange(1000)}"
    if member.alive:
        yield Step("stop a member", called, partial(lane.stop, member), 0.7)
    else:
        yield Step("start a member", called, partial(lane.start, member), 2)
    if not member.registered:
        if member.alive:
            yield Step("import", called, partial(lane.register, member), 5)
        return
    yield Step("edit", f"label of {called}", partial(lane.label, member, stage), 0.7)
    if member.alive:
        yield Step("rotate", called, partial(lane.rotate, member))
    if member.joined:
        how = "by force" if not member.alive else "keeping workloads" if keep else ""
        yield Step("unjoin", f"{called} {how}".strip(), partial(lane.leave, member, keep=keep), 1.3)
        return
    yield Step("forget", called, partial(lane.forget, member), 0.5)
    if member.alive and lane.uid:
        yield Step("join", called, partial(lane.join, member), 6)


def _without_name(process: str, lane: Lane) -> str:
    return process.replace(f"instance-{lane.name}", "instance")


async def recovers(lane: Lane) -> bool:
    """Clears a lane after a failure. Returns whether that succeeded, so that another sequence can use the lane."""
    try:
        await start_all(lane)
        await clear(lane)
        await agreed(lane)
    except NotDoneError:
        return False
    return True


async def start_all(lane: Lane) -> None:
    for member in lane.members:
        if not member.alive:
            await lane.start(member)


async def clear(lane: Lane) -> None:
    for member in lane.joined:
        await lane.leave(member, keep=False)
    for grant in list(lane.grants):
        await lane.withdraw(grant)
    if lane.held:
        await lane.let_go()
    if lane.placed:
        await lane.remove_workload()
    for member in lane.members:
        if member.registered:
            await lane.forget(member)
        if member.has_workload is not False or member.left_behind:
            await lane.clean_by_hand(member)


async def agreed(lane: Lane) -> float:
    """Waits until two comparisons in a row find no difference. Returns how many seconds that took."""
    began, agreeing = time.monotonic(), 0
    while True:
        found = await _compared(lane)
        agreeing = 0 if found else agreeing + 1
        if agreeing == 2:
            return time.monotonic() - began
        if time.monotonic() - began > SETTLED_WITHIN:
            raise NotDoneError(f"after {SETTLED_WITHIN:g} s: {'; '.join(found)}")
        await asyncio.sleep(_PAUSE)


async def _compared(lane: Lane) -> list[str]:
    try:
        return await deviations(lane) or await orphans(lane.plane, lane.world)
    except (KubeError, SupervisorError, aiohttp.ClientError, TimeoutError, sqlite3.Error, NotDoneError) as error:
        return [f"{type(error).__name__}: {error}"]
