"""Rights over random binds, unbinds and group changes while processes are killed and deliveries are lost.

A model says who may see which instance. Whenever everything runs again, the plane agrees with the model. An ordinary
run plays the same changes each time; a soak plays others, and more of them.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from support.entrance import BASE
from support.entrance import Client as Caller
from support.managed import World
from support.not_yet import NotYet
from support.our_kinds import SERVED
from support.people import GHIPPO, WITHIN, People, Person, register
from support.small_plane import SmallPlane, small_plane
from support.soak import SOAK
from support.waiting import eventually
from yarl import URL

from kairship.kube import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

INSTANCES = ("east", "west")
ROUNDS = 8 if SOAK else 4
SEED = int(os.environ.get("KAIRSHIP_SOAK_SEED", random.SystemRandom().randrange(1 << 16) if SOAK else 1))
HEALED_WITHIN = 120.0

Grant = tuple[str, str]
"""A user or the team, and an instance."""


@dataclass
class Model:
    """Bindings by their identifiers: the user or group, and the instance."""

    bindings: dict[str, Grant] = field(default_factory=dict)
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
        """The status of the reply of the entrance; 0 without a reply."""
        path = f"{BASE}/instances/{instance}"
        try:
            status = (await self.persons[person].get(path)).status
            if status == 401:  # a session lasts five minutes, and all of this may take longer
                found = self.persons[person]
                self.persons[person] = replace(found, client=await self.people.sign_in(found.name))
                status = (await self.persons[person].get(path)).status
        except (aiohttp.ClientError, TimeoutError, AssertionError):
            return 0
        return status

    async def differences(self) -> list[tuple[str, str, int]]:
        """The replies that are not as the model wants them: who, which instance, and the status."""
        found = [
            (person, instance, await self.sees(person, instance)) for person in self.persons for instance in INSTANCES
        ]
        return [
            (person, instance, status)
            for person, instance, status in found
            if status != (200 if self.model.may(person, instance) else 404)
        ]

    async def agrees(self) -> NotYet | bool:
        """Whether everything was delivered, and the rights are those of the model.

        Without the first, rights may agree by chance: the end of the team's right shows in nobody as long as the team
        is empty.
        """
        try:
            reply = await self.plane.ask("GET", "/webhooks")
        except (aiohttp.ClientError, TimeoutError) as error:
            return NotYet(repr(error))
        if reply.status != 200 or any(webhook.get("pending", 0) for webhook in reply.json["items"]):
            return NotYet(f"deliveries wait: {reply.body!r}")
        differences = await self.differences()
        return not differences or NotYet(differences)

    async def lets_changes_through(self) -> bool:
        try:
            return (await self.plane.ask("DELETE", "/users/u-nobody")).status == 404
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def step(self, choice: random.Random) -> None:
        """Makes one change that global management acknowledges."""
        await eventually(self.lets_changes_through, "changes being possible", timeout=HEALED_WITHIN)
        while not await self._try_change(choice):
            continue

    async def _try_change(self, choice: random.Random) -> bool:
        """Whether the change that was chosen was one."""
        what = choice.choice(("bind", "bind", "unbind", "unbind", "join", "leave"))
        model, person = self.model, choice.choice(list(self.persons))
        if what == "bind":
            who, instance = choice.choice([person, "team"]), choice.choice(INSTANCES)
            if (who, instance) in model.bindings.values():
                return False
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
        else:
            return False
        return True


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
"""Injects a fault, and returns a function that repairs it."""


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
        """The parent process replaces the workers by itself."""

    return nothing


async def kill_entrance(actors: Actors) -> Callable[[], Awaitable[None]]:
    """Kills the parent of the workers. They end with it, its port is free, and it is started again."""
    entrance = actors.plane.entrance
    workers = entrance.workers()
    await entrance.kill()

    def all_gone() -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in workers)

    await eventually(all_gone, "the end of the workers")
    address = URL(entrance.rest_url)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(address.host, address.port)
    return entrance.start


async def lose_deliveries(actors: Actors) -> Callable[[], Awaitable[None]]:
    actors.plane.deliveries.refuse()
    actors.plane.deliveries.reset()
    return actors.plane.deliveries.heal


async def swallow_acknowledgements(actors: Actors) -> Callable[[], Awaitable[None]]:
    """Deliveries arrive and are stored, but their replies are lost: they come again."""
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
        if number % 2:
            mend = await fault(actors)
            await asyncio.sleep(choice.random() * 0.2)
            await mend()
        began = time.monotonic()
        await eventually(actors.agrees, f"the rights as they were given ({where})")
        assert time.monotonic() - began < HEALED_WITHIN, where


async def test_a_revocation_that_is_not_delivered_ends_changes(actors: Actors) -> None:
    """While the end of a right cannot be delivered, nobody changes anything by it, nor by any other right."""
    ann = actors.persons[next(iter(actors.persons))]

    async def status_of_a_change(client: Caller) -> int:
        return (await client.request("DELETE", f"{GHIPPO}/users/u-nobody")).status

    async def changes() -> bool:
        return await status_of_a_change(ann.client) == 404

    async def refused() -> bool:
        return await status_of_a_change(ann.client) in (403, 503)

    await eventually(actors.lets_changes_through, "changes being possible", timeout=HEALED_WITHIN)
    ann = replace(ann, client=await actors.people.sign_in(ann.name))
    binding = await actors.people.bind(ann, "platform-admin")
    await eventually(changes, "Ann being an administrator", timeout=HEALED_WITHIN)
    actors.plane.deliveries.refuse()
    actors.plane.deliveries.reset()
    await actors.people.unbind(binding)
    await eventually(refused, "Ann's changes being refused", timeout=WITHIN)
    assert await status_of_a_change(actors.plane.admin) == 503
    await actors.plane.deliveries.heal()
    await eventually(actors.lets_changes_through, "changes being possible again", timeout=HEALED_WITHIN)
    assert await status_of_a_change(ann.client) == 403


async def test_nobody_has_a_right_that_is_not_delivered(actors: Actors) -> None:
    """While deliveries are lost, a new right is not in effect yet."""
    ann = next(iter(actors.persons))
    await eventually(actors.lets_changes_through, "changes being possible", timeout=HEALED_WITHIN)
    for binding in list(actors.model.bindings):
        await actors.people.unbind(binding)
    actors.model.bindings.clear()
    await eventually(actors.agrees, "the end of all rights", timeout=HEALED_WITHIN)
    actors.plane.deliveries.refuse()
    actors.plane.deliveries.reset()
    binding = await actors.people.bind(actors.persons[ann], "viewer", instance="east")
    assert await actors.sees(ann, "east") == 404
    await actors.plane.deliveries.heal()
    actors.model.bindings[binding] = (ann, "east")
    await eventually(actors.agrees, "the right that was delivered late", timeout=HEALED_WITHIN)
