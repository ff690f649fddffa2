"""Container management in the process of the test, over a global cluster of the test's own.

It uses its own service account there, so every test shows that its rights suffice. Tests register the members of the
shared plane, or relays in front of them.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from prometheus_client import CollectorRegistry
from protobuf import Oneof

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster
from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import Credential, Token
from kairship.instances.pool import PoolMetrics
from kairship.kpanda import index_stores, rbac
from kairship.kpanda.assembly import Assembly
from kairship.kpanda.collector import CollectorSettings
from kairship.kpanda.settings import Settings
from kairship.kpanda.sharding import WholeShard
from kairship.kube import AddressRule, Client, Connection, Object, kinds
from kairship.process.certificates import CertificateFiles
from kairship.reconcile import Clock, Metrics, SystemClock, resource_of
from kairship.resources import CLUSTERS, MEMBERSHIPS, NAMESPACE
from kairship.rpc.service_registry import ServiceRegistry
from support.not_yet import NotYet
from support.own_global import identity
from support.services import Api
from support.waiting import eventually

CLUSTER = resource_of(CLUSTERS)
LOOPBACK = AddressRule.allowing(["127.0.0.0/8"])


class Management(Api):
    """A running container management, whose methods are called as the entrance calls them."""

    memberships = resource_of(MEMBERSHIPS)

    def __init__(self, assembly: Assembly, world: Client, index: Path) -> None:
        super().__init__(ServiceRegistry(assembly.services), world, assembly.pool)
        self.assembly = assembly
        self.index = index

    async def register(self, connection: Connection, **fields: Any) -> Cluster:
        name = fields.pop("name", None) or f"c-{uuid.uuid4().hex[:8]}"
        return await self("Clusters.CreateCluster", Cluster, name=name, credential=kubeconfig(connection), **fields)

    async def until(self, name: str, holds: Callable[[Object], bool], *, timeout: float = 90.0) -> Object:
        """Waits until `holds` is true of the Cluster object, and returns the object."""

        async def as_wanted() -> NotYet | Object:
            found = await self.world.get(CLUSTER, name)
            return found if holds(found) else NotYet(found.get("status"))

        cluster: Object = await eventually(as_wanted, f"cluster {name} as wanted", timeout=timeout)
        return cluster

    def is_collected(self, name: str) -> bool:
        return name in dict(self.assembly.collection.clusters())

    def token_in_use(self, name: str) -> str | None:
        """The token with which the collector reads the cluster."""
        _, connection = self.assembly.collection._followed[name]
        return connection.token

    async def secrets(self) -> set[str]:
        page = await self.world.list(kinds.SECRETS, namespace=NAMESPACE)
        return {item["metadata"]["name"] for item in page.items}

    async def clear(self) -> None:
        """Deletes all clusters and Secrets that a test has created."""
        for item in (await self.world.list(CLUSTER)).items:
            await self.world.delete(CLUSTER, item["metadata"]["name"], missing_ok=True)
        for name in await self.secrets():
            await self.world.delete(kinds.SECRETS, name, namespace=NAMESPACE, missing_ok=True)

        async def gone() -> bool:
            return not list(self.assembly.global_cluster.clusters.reflector.store)

        await eventually(gone, "the end of all clusters")


def kubeconfig(connection: Connection | bytes | str) -> Credential:
    content = connection.to_kubeconfig(name="x") if isinstance(connection, Connection) else connection
    text = content.decode() if isinstance(content, bytes) else content
    form: Oneof[Literal["kubeconfig"], str] = Oneof("kubeconfig", text)
    return Credential(form=form)


def token(server: str, ca: bytes | None, text: str) -> Credential:
    form: Oneof[Literal["token"], Token] = Oneof(
        "token", Token(server=server, certificate_authority=(ca or b"").decode(), token=text)
    )
    return Credential(form=form)


def condition(cluster: Object, kind: str) -> tuple[str, str]:
    """Returns the status and the reason of a condition."""
    for each in cluster.get("status", {}).get("conditions", ()):
        if each["type"] == kind:
            return each["status"], each["reason"]
    return "", ""


def is_ready(cluster: Object) -> bool:
    return condition(cluster, "Ready") == ("True", "AsExpected")


async def grant_account(client: Client) -> None:
    """Creates the service account of container management with its rights."""
    for manifest in rbac.manifests():
        await client.apply_object(manifest, field_manager="kairship-tests")


@asynccontextmanager
async def management_of(
    connection: Connection,
    index: Path,
    *,
    addresses: AddressRule = LOOPBACK,
    clock: Clock | None = None,
    **settings: Any,
) -> AsyncIterator[Management]:
    """Runs container management in the global cluster at `connection`, until the end of the block."""
    async with Client(connection) as world:
        await grant_account(world)
        async with (
            Client(await identity(connection, rbac.ACCOUNT)) as client,
            index_stores.open_index_stores(str(index)) as opened,
        ):
            registry = CollectorRegistry()
            assembly = Assembly(
                client,
                opened,
                WholeShard(),
                Settings(
                    kubeconfig=Path("unused"),
                    tls=CertificateFiles(Path("unused"), Path("unused")),
                    index=index,
                    addresses=addresses,
                    collector=CollectorSettings(**settings),
                ),
                holder="test",
                term=None,
                clock=clock or SystemClock(),
                registry=registry,
                metrics=Metrics(registry),
                pool_metrics=PoolMetrics(registry),
            )
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(assembly.run())
                for cache in (assembly.global_cluster.clusters, assembly.global_cluster.memberships):
                    await cache.reflector.wait_synced()
                await assembly.pool.wait_synced()
                yield Management(assembly, world, index)
                running.cancel()
