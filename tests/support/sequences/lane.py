"""The model of one instance with its clusters and people, and the actions that change the model and the plane.

All actions use the plane's API as an administrator. An action returns when the plane has accepted it; `truth` compares
the results later.
"""

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from kairship.access import Role
from kairship.controllers.global_cluster import INSTANCE, MEMBERSHIP
from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, KubeError, NotFound, kinds
from support.entrance import BASE
from support.member_clusters import MemberCluster
from support.not_yet import NotYet
from support.people import GHIPPO, People, Person
from support.relay import Relay, relay_to
from support.sequences.retrying import read, until
from support.sequences.retrying_client import RetryingClient
from support.sequences.tables import Tables
from support.sequences.workload import PLACED, WORKLOAD

KPANDA = "/apis/kpanda.io/v1alpha1"
# The administrator's right inside a new instance may not have arrived yet, and Karmada's webhooks may be dead.
_INSIDE_NOT_YET = frozenset({403, 404, 500})


@dataclass
class Member:
    cluster: MemberCluster
    relay: Relay
    stage: str = ""
    registered: bool = False
    joined: bool = False
    alive: bool = True
    by_relay: bool = False
    has_workload: bool | None = False
    """None if it is undetermined, because the member left in the middle of a change."""
    left_behind: str = ""
    """The UID of the instance that it left while it was dead. The objects of that instance are still in it."""

    @property
    def name(self) -> str:
        return self.cluster.name

    @property
    def kubeconfig(self) -> str:
        connection = self.cluster.connection
        if self.by_relay:
            connection = msgspec.structs.replace(connection, server=f"https://{self.relay.address}")
        return connection.to_kubeconfig(name="member").decode()


@dataclass(frozen=True)
class Grant:
    who: str
    role: str
    namespace: str = ""
    """Empty for the whole instance."""


@dataclass
class Lane:
    plane: EmbeddedPlane
    world: Client
    """A client of the global cluster with every right, for reading only."""
    admin: RetryingClient
    members: list[Member]
    persons: dict[str, Person]
    workspace: str
    name: str
    uid: str = ""
    """The UID of the instance; empty while there is none."""
    alias: str = ""
    placed: bool = False
    grants: dict[Grant, str] = field(default_factory=dict)
    """The grants, with the identifiers of their bindings."""
    held: bool = False
    """Whether the workspace holds the namespace `default`."""

    @property
    def joined(self) -> list[Member]:
        return [member for member in self.members if member.joined]

    @property
    def path(self) -> str:
        return f"{BASE}/instances/{self.name}"

    async def create(self) -> None:
        await until(self._is_gone, "the former instance being gone")
        # Before that, a binding on this name would belong to the former instance, and end with it.
        await until(self._is_forgotten, "the former instance being forgotten by global management")
        self.alias = "First"
        wish = {"data": {"metadata": {"name": self.name}, "spec": {"alias": self.alias}}}
        await self.admin.ask("POST", f"{BASE}/instances", wish)
        self.uid = (await read(lambda: self.world.get(INSTANCE, self.name)))["metadata"]["uid"]

    async def delete(self) -> None:
        """Deletes the instance. It must have no clusters, or the plane refuses."""
        await self.departed()
        await self.admin.ask("DELETE", self.path)
        self.uid, self.placed, self.held = "", False, False
        self.grants.clear()

    async def rename(self, alias: str) -> None:
        wanted = {"apiVersion": "kairship.io/v1alpha1", "kind": "Instance", "metadata": {"name": self.name}}
        data = msgspec.json.encode({**wanted, "spec": {"driver": "local", "alias": alias}}).decode()
        await self.admin.ask("PUT", self.path, {"data": data})
        self.alias = alias

    async def make_namespace(self, name: str) -> None:
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.admin.ask("POST", f"{self.path}/proxy/api/v1/namespaces", manifest, patient_with=_INSIDE_NOT_YET)

    async def place(self) -> None:
        for path, manifest in PLACED:
            await self.admin.ask("POST", f"{self.path}/proxy/{path}", manifest, patient_with=_INSIDE_NOT_YET)
        self.placed = True

    async def remove_workload(self) -> None:
        # A member that leaves and keeps its workloads may still lose them by this until it has left.
        for member in self.members:
            if member.alive:
                await self._has_left(member)
            elif member.has_workload and not member.joined:
                member.has_workload = None
        for path, _ in reversed(PLACED):
            await self.admin.ask("DELETE", f"{self.path}/proxy/{path}/{WORKLOAD}", patient_with=_INSIDE_NOT_YET - {404})
        # The names can be used again when Karmada has removed its finalizers.
        for path, _ in PLACED:
            await until(partial(self._is_removed, path), "the names of the workload and its policy being free")
        self.placed = False

    async def register(self, member: Member) -> None:
        wish = {"name": member.name, "credential": {"kubeconfig": member.kubeconfig}, "labels": {"stage": "none"}}
        await self.admin.ask("POST", f"{KPANDA}/clusters", wish)
        member.registered, member.stage = True, "none"

    async def forget(self, member: Member) -> None:
        await self._has_left(member)
        await self.admin.ask("DELETE", f"{KPANDA}/clusters/{member.name}")
        member.registered = False

    async def label(self, member: Member, stage: str) -> None:
        await self.admin.ask("PUT", f"{KPANDA}/clusters/{member.name}/labels", {"set": {"stage": stage}})
        member.stage = stage

    async def rotate(self, member: Member) -> None:
        member.by_relay = not member.by_relay
        credential = {"credential": {"kubeconfig": member.kubeconfig}}
        await self.admin.ask("PUT", f"{KPANDA}/clusters/{member.name}/credential", credential)

    async def join(self, member: Member) -> None:
        await self._has_left(member)
        if member.left_behind not in ("", self.uid):
            await self.clean_by_hand(member)

        async def done() -> bool:
            return not await self._is_leaving(member)

        await self.admin.ask("POST", f"{self.path}/clusters/{member.name}", {}, done=done)
        member.joined, member.left_behind = True, ""

    async def leave(self, member: Member, *, keep: bool) -> None:
        if keep and self.placed and member.alive:
            await until(lambda: self._arrived(member), f"the workload in {member.name}")
            member.has_workload = True
        query = f"keepWorkloads={str(keep).lower()}&force={str(not member.alive).lower()}"

        async def done() -> bool:
            return await self._is_leaving(member)

        await self.admin.ask("DELETE", f"{self.path}/clusters/{member.name}?{query}", done=done)
        member.joined = False
        if not member.alive:
            member.left_behind, member.has_workload = self.uid, None
        elif not keep:
            # Karmada may not have adopted a workload that was kept earlier.
            member.has_workload = None if member.has_workload else False
        elif not self.placed:
            member.has_workload = None

    async def stop(self, member: Member) -> None:
        await self.plane.supervisor.stop(f"{member.cluster.group}/kube-apiserver")
        member.alive = False

    async def start(self, member: Member) -> None:
        name = f"{member.cluster.group}/kube-apiserver"
        await self.plane.supervisor.start(name)
        await self.plane.supervisor.wait_ready(name, timeout=120)
        member.alive = True

    async def grant(self, grant: Grant) -> None:
        subject = {"kind": "USER", "id": self.persons[grant.who].id}
        target = {"kind": "RESOURCE", "instance": self.name, "namespace": grant.namespace}
        body = {"subject": subject, "role": grant.role, "target": target}
        # Until the instance is registered, no role can be bound on it.
        made = await self.admin.ask("POST", f"{GHIPPO}/bindings", body, patient_with={404})
        self.grants[grant] = made["id"]

    async def withdraw(self, grant: Grant) -> None:
        await self.admin.ask("DELETE", f"{GHIPPO}/bindings/{self.grants[grant]}")
        del self.grants[grant]

    async def hold(self) -> None:
        path = f"{GHIPPO}/workspaces/{self.workspace}/resources"
        await self.admin.ask("POST", path, {"instance": self.name, "namespace": "default"}, patient_with={404})
        self.held = True

    async def let_go(self) -> None:
        path = f"{GHIPPO}/workspaces/{self.workspace}/resources"
        for item in (await self.admin.ask("GET", path))["items"]:
            await self.admin.ask("DELETE", f"{path}/{item['id']}")
        self.held = False

    async def departed(self) -> None:
        for member in self.members:
            await self._has_left(member)

    async def _is_gone(self) -> bool:
        try:
            await self.world.get(INSTANCE, self.name)
        except NotFound:
            return True
        return False

    async def _is_forgotten(self) -> bool:
        return self.name not in Tables.read(self.plane.home.ghippo / "ghippo.db").resources

    async def _is_leaving(self, member: Member) -> bool:
        """Whether a member leaves or has left."""
        try:
            found = await read(lambda: self.world.get(MEMBERSHIP, member.name))
        except NotFound:
            return True
        return "deletionTimestamp" in found["metadata"]

    async def _has_left(self, member: Member) -> None:
        """Waits until the membership is gone, because its name cannot be used again before."""
        if member.joined:
            return

        async def gone() -> NotYet | bool:
            try:
                return NotYet((await self.world.get(MEMBERSHIP, member.name)).get("status"))
            except NotFound:
                return True

        await until(gone, f"{member.name} having left")

    async def _is_removed(self, path: str) -> bool:
        return await self.admin.status(f"{self.path}/proxy/{path}/{WORKLOAD}") == 404

    async def _arrived(self, member: Member) -> bool:
        async with member.cluster.client() as client:
            try:
                await client.get(kinds.DEPLOYMENTS, WORKLOAD, namespace="default")
            except KubeError:
                return False
        return True

    async def clean_by_hand(self, member: Member) -> None:
        """Removes what an instance has left in a cluster that it could not reach, as the owner of the cluster does."""
        async with member.cluster.client() as client:
            await client.delete(kinds.NAMESPACES, "karmada-cluster", missing_ok=True)
            await client.delete(kinds.DEPLOYMENTS, WORKLOAD, namespace="default", missing_ok=True)
            for kind in (kinds.CLUSTER_ROLE_BINDINGS, kinds.CLUSTER_ROLES, kinds.ROLE_BINDINGS):
                for item in (await client.list(kind)).items:
                    metadata = item["metadata"]
                    if "karmada" in metadata["name"] or metadata["name"].startswith("kairship-access-"):
                        await client.delete(
                            kind, metadata["name"], namespace=metadata.get("namespace"), missing_ok=True
                        )

            async def gone() -> bool:
                found = (await client.list(kinds.NAMESPACES)).items
                return "karmada-cluster" not in {item["metadata"]["name"] for item in found}

            await until(gone, f"{member.name} being clean")
        member.left_behind, member.has_workload = "", False


GRANTS = (
    Grant("ann", Role.VIEWER.id),
    Grant("ann", Role.EDITOR.id),
    Grant("ben", Role.VIEWER.id, "default"),
    Grant("ben", Role.ADMIN.id, "default"),
)


@asynccontextmanager
async def lane_of(
    plane: EmbeddedPlane, world: Client, people: People, clusters: Sequence[MemberCluster]
) -> AsyncIterator[Lane]:
    """Yields a lane without an instance, and without registered clusters or grants."""
    name = f"lane-{uuid.uuid4().hex[:6]}"
    async with AsyncExitStack() as stack:
        members = []
        for cluster in clusters:
            port = int(cluster.connection.server.rpartition(":")[2])
            members.append(Member(cluster, await stack.enter_async_context(relay_to("127.0.0.1", port))))
        persons = {who: await _with_token(await people.person(f"{name}-{who}")) for who in ("ann", "ben")}
        workspace: dict[str, Any] = await people.do("POST", "workspaces", {"name": name})
        yield Lane(plane, world, RetryingClient(people.admin), members, persons, str(workspace["id"]), name)


async def _with_token(person: Person) -> Person:
    """Replaces the session, which would expire during a long run, by an access token."""
    reply = await person.client.request(
        "POST", f"{GHIPPO}/current-user/access-tokens", {"name": "sequences", "days": 1}
    )
    assert reply.status == 200, reply.body
    return Person(person.id, person.name, person.client.named(reply.json["token"]))
