"""Rights over random binds, unbinds and group changes while processes are killed and deliveries are lost.

A model says who may see which instance. Whenever everything runs again, the plane says what the model says, and does
not change its mind.
"""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from support.entrance import BASE
from support.managed import World
from support.our_kinds import SERVED
from support.people import People, Person, register, within
from support.small_plane import SmallPlane, small_plane
from yarl import URL

from kairship.kube import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

INSTANCES = ("east", "west")
ROUNDS = 8
SEED = int(os.environ.get("KAIRSHIP_SOAK_SEED", random.SystemRandom().randrange(1 << 16)))
HEALED_WITHIN = 120.0

Place = tuple[str, str]
"""Who, and on which instance."""


@dataclass
class Model:
    """Bindings by their identifiers: whom or which group, and where."""

    bindings: dict[str, Place] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)

    def may(self, person: str, instance: str) -> bool:
        own = (person, instance) in self.bindings.values()
        return own or (person in self.members and ("team", instance) in self.bindings.values())


class Actors:
    def __init__(self, plane: SmallPlane, people: People, persons: list[Person], team: str) -> None:
        self.plane = plane
        self.people = people
        self.persons = {person.name: person for person in persons}
        self.team = team
        self.model = Model()

    async def sees(self, person: str, instance: str) -> int:
        """The status that the entrance answers with; 0 if nobody does."""
        try:
            status = (await self.persons[person].get(f"{BASE}/instances/{instance}")).status
            if status == 401:  # a session lasts five minutes, and all of this may take longer
                found = self.persons[person]
                self.persons[person] = replace(found, client=await self.people.sign_in(found.name))
        except (aiohttp.ClientError, TimeoutError, AssertionError):
            return 0
        return status

    async def agrees(self) -> bool:
        for person in self.persons:
            for instance in INSTANCES:
                wanted = 200 if self.model.may(person, instance) else 404
                if await self.sees(person, instance) != wanted:
                    return False
        return True

    async def lets_changes_through(self) -> bool:
        try:
            return (await self.plane.ask("DELETE", "/users/u-nobody")).status == 404
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def step(self, choice: random.Random) -> None:
        """One change that global management has acknowledged."""
        await within(self.lets_changes_through, seconds=HEALED_WITHIN)
        what = choice.choice(("bind", "bind", "unbind", "unbind", "join", "leave"))
        model, person = self.model, choice.choice(list(self.persons))
        if what == "bind":
            who, instance = choice.choice([person, "team"]), choice.choice(INSTANCES)
            if (who, instance) in model.bindings.values():
                return
            subject = self.team if who == "team" else self.persons[who]
            model.bindings[await self.people.bind(subject, "viewer", instance=instance)] = (who, instance)
        elif what == "unbind" and model.bindings:
            binding = choice.choice(list(model.bindings))
            await self.people.unbind(binding)
            del model.bindings[binding]
        elif what == "join" and person not in model.members:
            await self.people.do("POST", f"groups/{self.team}/members", {"user": self.persons[person].id})
            model.members.add(person)
        elif what == "leave" and person in model.members:
            await self.people.do("DELETE", f"groups/{self.team}/members/{self.persons[person].id}")
            model.members.remove(person)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def actors(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Actors]:
    async with (
        Client(world.connection) as client,
        small_plane(world.connection, tmp_path_factory.mktemp("rights")) as plane,
    ):
        for name in INSTANCES:
            await client.create(SERVED["Instance"], {"metadata": {"name": name}, "spec": {"driver": "operator"}})
            await register(client, name)
        people = People(plane.admin)
        persons = [await people.person("ann"), await people.person("bob")]
        yield Actors(plane, people, persons, await people.group("team"))


Fault = Callable[[Actors], Awaitable[Callable[[], Awaitable[None]]]]
"""Breaks something, and returns what mends it."""


async def kill_global_management(actors: Actors) -> Callable[[], Awaitable[None]]:
    await actors.plane.ghippo.kill()
    return actors.plane.ghippo.start


async def kill_workers(actors: Actors) -> Callable[[], Awaitable[None]]:
    for pid in actors.plane.entrance.workers():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue

    async def nothing() -> None:
        """They are replaced."""

    return nothing


async def kill_entrance(actors: Actors) -> Callable[[], Awaitable[None]]:
    """The process that keeps the workers. They go with it, and nobody holds its port; then it is started again."""
    entrance = actors.plane.entrance
    workers = entrance.workers()
    await entrance.kill()

    async def all_gone() -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in workers)

    await within(all_gone)
    address = URL(entrance.rest_url)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(address.host, address.port)
    return entrance.start


async def lose_deliveries(actors: Actors) -> Callable[[], Awaitable[None]]:
    actors.plane.deliveries.refuse()
    actors.plane.deliveries.reset()
    return actors.plane.deliveries.heal


async def swallow_acknowledgements(actors: Actors) -> Callable[[], Awaitable[None]]:
    """Deliveries arrive and are stored, and global management does not hear of it: they come again."""
    actors.plane.deliveries.hold()

    async def mend() -> None:
        actors.plane.deliveries.reset()
        await actors.plane.deliveries.heal()

    return mend


@pytest.mark.parametrize(
    "fault", [kill_global_management, kill_workers, kill_entrance, lose_deliveries, swallow_acknowledgements]
)
async def test_rights_are_those_that_were_given(actors: Actors, fault: Fault) -> None:
    choice = random.Random(f"{SEED} {fault.__name__}")  # noqa: S311 - which faults, not which keys
    for number in range(ROUNDS):
        where = f"seed {SEED}, round {number}"
        await actors.step(choice)
        mend = await fault(actors) if choice.random() < 0.5 else None
        if mend is not None:
            await asyncio.sleep(choice.random() * 0.2)
            await mend()
        taken = await within(actors.agrees, seconds=HEALED_WITHIN)
        assert taken < HEALED_WITHIN, where
        assert await actors.agrees(), where  # and stays so: no late delivery brings a right back


async def test_nobody_has_a_right_that_is_not_delivered(actors: Actors) -> None:
    """While deliveries are lost, what was given does not hold yet; what was taken must be told of by then."""
    ann = next(iter(actors.persons))
    await within(actors.lets_changes_through, seconds=HEALED_WITHIN)
    for binding in list(actors.model.bindings):
        await actors.people.unbind(binding)
    actors.model.bindings.clear()
    await within(actors.agrees, seconds=HEALED_WITHIN)
    actors.plane.deliveries.refuse()
    actors.plane.deliveries.reset()
    binding = await actors.people.bind(actors.persons[ann], "viewer", instance="east")
    assert await actors.sees(ann, "east") == 404
    await actors.plane.deliveries.heal()
    actors.model.bindings[binding] = (ann, "east")
    await within(actors.agrees, seconds=HEALED_WITHIN)
