"""People of a running plane: made, let in, bound and unbound through its API, as an administrator does it."""

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kairship.kube import AlreadyExists, NotFound
from kairship.kube import Client as KubeClient
from support.entrance import Client, Reply
from support.our_kinds import SERVED

GHIPPO = "/apis/ghippo.io/v1alpha1"
WITHIN = 5.0
"""Seconds in which a right that was given or taken must have its effect."""

_FIRST, PASSWORD = "the first password of a test", "a password of a person in a test"


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    client: Client

    async def get(self, path: str) -> Reply:
        return await self.client.request("GET", path)


class People:
    def __init__(self, admin: Client) -> None:
        """`admin` is a client of an administrator of the platform."""
        self.admin = admin
        self.own = f"p{uuid.uuid4().hex[:6]}"
        self._users: list[str] = []

    async def do(self, verb: str, path: str, body: Any = None) -> Any:
        reply = await self.admin.request(verb, f"{GHIPPO}/{path}", body)
        assert reply.status == 200, (verb, path, reply.status, reply.body)
        return reply.json

    async def person(self, name: str) -> Person:
        """Signed in, with nothing that they may do."""
        full = f"{self.own}-{name}"
        made = await self.do("POST", "users", {"name": full, "password": _FIRST})
        self._users.append(made["id"])
        first = await self.sign_in(full, _FIRST)
        change = {"oldPassword": _FIRST, "newPassword": PASSWORD}
        changed = await first.request("PUT", f"{GHIPPO}/current-user/password", change)
        assert changed.status == 200, changed.body
        return Person(made["id"], full, await self.sign_in(full, PASSWORD))

    async def sign_in(self, name: str, password: str = PASSWORD) -> Client:
        stranger = self.admin.named("")
        reply = await stranger.request("POST", f"{GHIPPO}/login", {"name": name, "password": password})
        assert reply.status == 200, reply.body
        return self.admin.named(reply.json["token"])

    async def group(self, name: str, *members: Person) -> str:
        made = await self.do("POST", "groups", {"name": f"{self.own}-{name}"})
        for member in members:
            await self.do("POST", f"groups/{made['id']}/members", {"user": member.id})
        return str(made["id"])

    async def bind(self, who: Person | str, role: str, *, instance: str = "", namespace: str = "") -> str:
        """The identifier of the binding. A group is named by its id."""
        subject = {"kind": "GROUP", "id": who} if isinstance(who, str) else {"kind": "USER", "id": who.id}
        target = {"kind": "RESOURCE", "instance": instance, "namespace": namespace}
        body = {"subject": subject, "role": role, "target": target if instance else {"kind": "PLATFORM"}}
        return str((await self.do("POST", "bindings", body))["id"])

    async def unbind(self, binding: str) -> None:
        await self.do("DELETE", f"bindings/{binding}")

    async def clear_away(self) -> None:
        for user in self._users:
            await self.admin.request("DELETE", f"{GHIPPO}/users/{user}")


async def register(global_cluster: KubeClient, instance: str) -> None:
    """Until global management knows an instance, no role can be bound on it."""
    found = await global_cluster.get(SERVED["Instance"], instance)
    name = f"kairship.instance.{instance}"
    spec = {"product": "kairship", "resourceType": "instance", "resource": instance, "uid": found["metadata"]["uid"]}
    with suppress(AlreadyExists):
        await global_cluster.create(SERVED["Registration"], {"metadata": {"name": name}, "spec": spec})

    async def known() -> bool:
        try:
            status = (await global_cluster.get(SERVED["Registration"], name)).get("status") or {}
        except NotFound:
            return False
        return any(each["type"] == "Registered" and each["status"] == "True" for each in status.get("conditions", ()))

    await within(known, seconds=60)


async def within(holds: Callable[[], Awaitable[bool]], *, seconds: float = WITHIN) -> float:
    """How many seconds it took."""
    began = time.monotonic()
    while not await holds():
        assert time.monotonic() - began < seconds, f"not within {seconds} s"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


def told(reply: Reply) -> str:
    return str(json.loads(reply.body)["message"])
