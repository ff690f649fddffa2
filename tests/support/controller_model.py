"""A model of what people ask of the plane, and whether the plane holds exactly that.

`Model` knows nothing of controllers: members that are registered, joined and alive, and who holds which role where.
Each act is done to the plane and to the model; `deviations` compares the global cluster, the instance and the members
with the model and says what is missing or too much.
"""

import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kairship.access import Binding, Role, permissions_of
from kairship.access.places import PLATFORM
from kairship.access.storing import BINDING
from kairship.controllers.access.desired import desire
from kairship.controllers.access.grants import gather
from kairship.controllers.global_cluster import CLUSTER, MEMBERSHIP
from kairship.controllers.registry.reconciler import REGISTRATION
from kairship.kube import Client, NotFound, Resource, kinds
from kairship.resources import NAMESPACE
from support.bindings import bind as binding
from support.bindings import on
from support.managed import ManagedInstance
from support.member_clusters import MemberCluster
from support.relay import Relay, relay_to

_RBAC = (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLE_BINDINGS)
_OURS = "kairship.io/access=true"
_sequence = itertools.count(1)


@dataclass
class Member:
    cluster: MemberCluster
    relay: Relay
    stage: str = "none"
    joined: bool = False
    alive: bool = True
    by_relay: bool = False

    @property
    def name(self) -> str:
        return self.cluster.name


@dataclass
class Model:
    instance: ManagedInstance
    members: list[Member]
    held: dict[str, tuple[Role, str]] = field(default_factory=dict)
    """By binding: the role, and the namespace, if it is not on the whole instance."""

    @property
    def client(self) -> Client:
        return self.instance.client

    async def register(self) -> None:
        for member in self.members:
            await self._describe(member)

    async def join(self, member: Member) -> None:
        await member.cluster.join(self.client, self.instance.name)
        member.joined = True

    async def leave(self, member: Member, *, keep: bool) -> None:
        spec = {"onRemove": "Keep" if keep else "Delete", "force": not member.alive}
        await self.client.patch(MEMBERSHIP, member.name, {"spec": spec})
        await self.client.delete(MEMBERSHIP, member.name)
        member.joined = False

    async def edit(self, member: Member, stage: str) -> None:
        member.stage = stage
        await self._describe(member)

    async def rotate(self, member: Member) -> None:
        member.by_relay = not member.by_relay
        await self._describe(member)

    async def stop(self, member: Member) -> None:
        await member.cluster.supervisor.stop(member.cluster.group)
        member.alive = False

    async def start(self, member: Member) -> None:
        await member.cluster.supervisor.start(member.cluster.group)
        await member.cluster.supervisor.wait_ready(member.cluster.group, timeout=60)
        member.alive = True

    async def grant(self, who: str, role: Role, namespace: str) -> None:
        self.held[who] = (role, namespace)
        await self._deliver(who, role, namespace, revoked=False)

    async def withdraw(self, who: str) -> None:
        role, namespace = self.held.pop(who)
        await self._deliver(who, role, namespace, revoked=True)

    async def deviations(self) -> list[str]:
        """What is not as it should be, in words. Every member is alive by now."""
        found = [*await self._in_the_global_cluster()]
        async with await self.instance.inside() as inside:
            found += await self._in_the_instance(inside)
            for member in self.members:
                found += await self._in_a_member(member, inside)
        return found

    async def _describe(self, member: Member) -> None:
        connection = member.cluster.connection
        if member.by_relay:
            connection = msgspec.structs.replace(connection, server=f"https://{member.relay.address}")
        await member.cluster.register(self.client, labels={"stage": member.stage}, connection=connection)

    async def _deliver(self, who: str, role: Role, namespace: str, *, revoked: bool) -> None:
        scope: dict[str, Any] = {
            "level": "Namespace" if namespace else "Instance",
            "instance": self.instance.name,
            "instanceUid": self.instance.uid,
            **({"namespace": namespace} if namespace else {}),
        }
        spec = {
            "subject": {"kind": "User", "id": who},
            "role": {"id": role.id},
            "permissions": sorted(permissions_of(role)),
            "scope": scope,
            "origin": {"kind": "Resource"},
            "sequence": next(_sequence),
            "revoked": revoked,
        }
        name = f"{who}-{namespace or 'all'}"
        await self.client.apply(BINDING, {"metadata": {"name": name}, "spec": spec}, field_manager="tests")

    def _joined(self) -> list[str]:
        return sorted(member.name for member in self.members if member.joined)

    async def _desired(self, inside: Client) -> Any:
        namespaces = {item["metadata"]["name"] for item in (await inside.list(kinds.NAMESPACES)).items}
        bindings = [
            binding(who, role, msgspec.structs.replace(on("x", namespace or None), instance_uid="uid"))
            for who, (role, namespace) in self.held.items()
        ]
        bindings += [
            each for each in (await self.client.list(BINDING, as_type=Binding)).items if each.place == PLATFORM
        ]
        return desire(gather(bindings, "uid"), namespaces=namespaces, clusters=self._joined(), kinds=())

    async def _in_the_global_cluster(self) -> list[str]:
        client, name = self.client, self.instance.name
        members = [member.name for member in self.members]
        found = _differ("memberships", await _names(client, MEMBERSHIP), self._joined())
        found += _differ("clusters", await _names(client, CLUSTER), [*members, f"k-{name}"])
        found += _differ("registrations", await _names(client, REGISTRATION), [f"kairship.instance.{name}"])
        secrets = {each.rpartition("-")[0] for each in await _names(client, kinds.SECRETS, namespace=NAMESPACE)}
        expected = {
            f"instance-{name}",
            f"collector-{name}",
            *(f"cluster-{each}".rpartition("-")[0] for each in members),
        }
        found += _differ("secrets", secrets, expected)
        for item in (await client.list(MEMBERSHIP)).items:
            conditions = {each["type"]: each["status"] for each in item.get("status", {}).get("conditions", ())}
            if (conditions.get("Joined"), conditions.get("Ready")) != ("True", "True"):
                found.append(f"membership {item['metadata']['name']}: {conditions}")
        return found

    async def _in_the_instance(self, inside: Client) -> list[str]:
        found = _differ("clusters of Karmada", await _names(inside, kinds.CLUSTERS), self._joined())
        tokens = [name for member in self._joined() for name in (member, f"{member}-impersonator")]
        found += _differ("tokens", await _names(inside, kinds.SECRETS, namespace="karmada-cluster"), tokens)
        spaces = [name for name in await _names(inside, kinds.NAMESPACES) if name.startswith("karmada-es-")]
        found += _differ("execution namespaces", spaces, [f"karmada-es-{name}" for name in self._joined()])
        desired = await self._desired(inside)
        found += _differ("rights in the instance", await _rights(inside), _places(desired.instance))
        for item in (await inside.list(kinds.CLUSTERS)).items:
            member = next(each for each in self.members if each.name == item["metadata"]["name"])
            if item["metadata"]["labels"].get("stage") != member.stage:
                found.append(f"label of {member.name}: {item['metadata']['labels']}")
            by_relay = item["spec"]["apiEndpoint"] == f"https://{member.relay.address}"
            if by_relay != member.by_relay:
                found.append(f"address of {member.name}: {item['spec']['apiEndpoint']}")
        works = await inside.list(kinds.WORKS, label_selector=_OURS)
        if len(works.items) != len(desired.members) * len(self._joined()):
            found.append(f"{len(works.items)} Works instead of {len(desired.members)} for each of {self._joined()}")
        return found

    async def _in_a_member(self, member: Member, inside: Client) -> list[str]:
        desired = (await self._desired(inside)).members if member.joined else {}
        async with member.cluster.client() as client:
            found = _differ(f"rights in {member.name}", await _rights(client), _places(desired))
            accounts: set[str] = set()
            try:
                await client.get(kinds.NAMESPACES, "karmada-cluster")
                accounts = set(await _names(client, kinds.SERVICE_ACCOUNTS, namespace="karmada-cluster")) - {"default"}
                tokens = await _names(client, kinds.SECRETS, namespace="karmada-cluster")
                if len(tokens) != 2:
                    found.append(f"tokens in {member.name}: {tokens}")
            except NotFound:
                pass
            expected = {f"karmada-{member.name}", "karmada-impersonator"} if member.joined else set()
            return found + _differ(f"accounts in {member.name}", accounts, expected)


async def _names(client: Client, kind: Resource, **where: Any) -> list[str]:
    return [item["metadata"]["name"] for item in (await client.list(kind, **where)).items]


async def _rights(client: Client) -> set[tuple[str, ...]]:
    """Objects with those whom they are about."""
    found = set()
    for kind in _RBAC:
        for item in (await client.list(kind, label_selector=_OURS)).items:
            subjects = (each["name"] for each in item.get("subjects") or ())
            metadata = item["metadata"]
            found.add((kind.kind, metadata.get("namespace", ""), metadata["name"], *subjects))
    return found


def _places(desired: Any) -> set[tuple[str, ...]]:
    return {
        (place.kind, place.namespace, place.name, *(each["name"] for each in content.get("subjects", ())))
        for place, content in desired.items()
    }


def _differ(what: str, found: Iterable[Any], expected: Iterable[Any]) -> list[str]:
    here, there = set(found), set(expected)
    said = [f"{what}: too much: {sorted(here - there)}"] if here - there else []
    return [*said, f"{what}: missing: {sorted(there - here)}"] if there - here else said


@asynccontextmanager
async def model_of(instance: ManagedInstance, clusters: Iterable[MemberCluster]) -> AsyncIterator[Model]:
    async with AsyncExitStack() as stack:
        members = []
        for cluster in clusters:
            port = int(cluster.connection.server.rpartition(":")[2])
            members.append(Member(cluster, await stack.enter_async_context(relay_to("127.0.0.1", port))))
        yield Model(instance, members)
