"""Real clusters beside the shared plane that can join instances, registered as container management registers them."""

import asyncio
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from kairship.controllers.global_cluster import CLUSTER, MEMBERSHIP
from kairship.controlplane import ControlPlane, PlaneKind
from kairship.embedded import EmbeddedPlane, clusters
from kairship.engine import Engine
from kairship.instances.account_tokens import issue_token
from kairship.kube import Client, Connection, kinds
from kairship.resources import NAMESPACE, Membership
from support.waiting import eventually


class MemberCluster:
    """A cluster of a test's own, and its objects in the global cluster."""

    def __init__(self, plane: EmbeddedPlane, engine: Engine) -> None:
        self.uid = str(uuid.uuid4())
        self.name = f"member-{self.uid[:8]}"
        self.supervisor = plane.supervisor
        self._planes = plane.home.planes
        self._engine = engine
        self.control_plane: ControlPlane

    @property
    def group(self) -> str:
        return self.control_plane.group

    @property
    def connection(self) -> Connection:
        return self.control_plane.connection()

    def client(self) -> Client:
        return Client(self.connection)

    async def start(self) -> None:
        self.control_plane = await clusters.control_plane(
            self.supervisor, self._planes, kind=PlaneKind.MEMBER, name=self.name, uid=self.uid
        )
        await clusters.run(self.supervisor, self._engine, self.control_plane)

    async def remove(self) -> None:
        await self.supervisor.delete_group(self.group)
        await self.supervisor.release_ports(self.uid)
        await asyncio.to_thread(shutil.rmtree, self._planes / self.uid, ignore_errors=True)

    async def register(
        self,
        world: Client,
        *,
        name: str = "",
        labels: dict[str, str] | None = None,
        connection: Connection | None = None,
        **spec: Any,
    ) -> None:
        """Creates the Cluster and its credential: the administrator's connection, if no other is given."""
        name = name or self.name
        await self.set_credential(world, connection or self.connection, name=name)
        await world.apply(
            CLUSTER,
            {
                "metadata": {"name": name, "labels": labels or {}},
                "spec": {"credentials": {"name": f"cluster-{name}"}, **spec},
            },
            field_manager="tests",
        )

    async def set_credential(self, world: Client, connection: Connection, *, name: str = "") -> None:
        """Writes the Secret with the credential of the cluster."""
        kubeconfig = connection.to_kubeconfig(name="member").decode()
        secret = {"metadata": {"name": f"cluster-{name or self.name}"}, "stringData": {"kubeconfig": kubeconfig}}
        await world.apply(kinds.SECRETS, secret, field_manager="tests", namespace=NAMESPACE)

    async def another_credential(self) -> Connection:
        """Creates a service account with every right, and returns a connection with its token."""
        name = f"test-{uuid.uuid4().hex[:8]}"
        async with self.client() as client:
            await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace="default")
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
            subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]
            binding = {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}
            await client.create(kinds.CLUSTER_ROLE_BINDINGS, binding)
            issued = await issue_token(client, namespace="default", account=name, seconds=3600, timeout=10.0)
        return msgspec.structs.replace(self.connection, client_cert=None, client_key=None, token=issued.token)

    async def join(self, world: Client, instance: str, *, name: str = "", **spec: Any) -> None:
        await world.create(
            MEMBERSHIP, {"metadata": {"name": name or self.name}, "spec": {"instance": instance, **spec}}
        )

    async def membership(self, world: Client, *, name: str = "") -> Membership:
        return await world.typed(Membership).get(MEMBERSHIP, name or self.name)

    async def until_joined(self, world: Client) -> None:
        async def ready() -> bool:
            conditions = (await self.membership(world)).status.conditions
            return {(each.type, each.status) for each in conditions} >= {("Joined", "True"), ("Ready", "True")}

        await eventually(ready, f"{self.name} joining")


@contextmanager
def member_cluster(plane: EmbeddedPlane, engine: Engine) -> Iterator[MemberCluster]:
    """Runs a member cluster, for a fixture."""
    member = MemberCluster(plane, engine)
    try:
        asyncio.run(member.start())
        yield member
    finally:
        asyncio.run(member.remove())
