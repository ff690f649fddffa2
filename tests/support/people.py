"""Users of a running plane. An administrator creates them, and binds and unbinds roles, through the API."""

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kairship.kube import AlreadyExists
from kairship.kube import Client as KubeClient
from support.entrance import Client, Reply
from support.our_kinds import SERVED
from support.waiting import eventually

GHIPPO = "/apis/ghippo.io/v1alpha1"
WITHIN = 5.0
"""Seconds within which a binding, and the end of one, must have its effect."""

_FIRST, PASSWORD = "the first password of a test", "a password of a person in a test"


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    client: Client

    async def get(self, path: str) -> Reply:
        return await self.client.request("GET", path)

    async def with_access_token(self) -> "Person":
        """The same person with an access token instead of the session, which lasts five minutes."""
        path = f"{GHIPPO}/current-user/access-tokens"
        reply = await self.client.request("POST", path, {"name": "tests", "days": 1})
        assert reply.status == 200, reply.body
        return Person(self.id, self.name, self.client.named(reply.json["token"]))


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
        """Creates a user without any role, signed in."""
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
        """Binds a role to a person, or to the group with this id. Returns the identifier of the binding."""
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
    """Registers an instance with global management, so that roles can be bound on it."""
    found = await global_cluster.get(SERVED["Instance"], instance)
    name = f"kairship.instance.{instance}"
    spec = {"product": "kairship", "resourceType": "instance", "resource": instance, "uid": found["metadata"]["uid"]}
    with suppress(AlreadyExists):
        await global_cluster.create(SERVED["Registration"], {"metadata": {"name": name}, "spec": spec})

    async def registered() -> bool:
        status = (await global_cluster.get(SERVED["Registration"], name)).get("status") or {}
        return any(each["type"] == "Registered" and each["status"] == "True" for each in status.get("conditions", ()))

    await eventually(registered, f"the registration of {instance}")


def message_of(reply: Reply) -> str:
    return str(json.loads(reply.body)["message"])
