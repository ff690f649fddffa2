"""Container management over a global cluster of the test's own, called as the entrance calls it.

It acts as its account there, so every test shows that its rights are enough. Clusters to register are the members of
the shared plane, and what a test puts in front of them.
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
from kairship.kpanda import rbac, stores
from kairship.kpanda.assembly import Assembly
from kairship.kpanda.collector import CollectorSettings
from kairship.kpanda.settings import Settings
from kairship.kpanda.sharing import Whole
from kairship.kube import AddressRule, Client, Connection, Object, kinds
from kairship.process.certificates import CertificateFiles
from kairship.reconcile import Clock, Metrics, SystemClock, resource_of
from kairship.resources import CLUSTERS, MEMBERSHIPS, NAMESPACE
from kairship.rpc.registry import Registry
from support.own_global import identity
from support.services import Api, until

CLUSTER = resource_of(CLUSTERS)
LOOPBACK = AddressRule.allowing(["127.0.0.0/8"])


class Management(Api):
    """A running one."""

    memberships = resource_of(MEMBERSHIPS)

    def __init__(self, assembly: Assembly, world: Client, index: Path) -> None:
        super().__init__(Registry(assembly.services), world, assembly.pool)
        self.assembly = assembly
        self.index = index

    async def register(self, connection: Connection, **fields: Any) -> Cluster:
        name = fields.pop("name", None) or f"c-{uuid.uuid4().hex[:8]}"
        return await self("Clusters.CreateCluster", Cluster, name=name, credential=kubeconfig(connection), **fields)

    async def seen(self, name: str, holds: Callable[[Object], bool], *, timeout: float = 90.0) -> Object:
        """The custom resource, as soon as it is as it should be."""
        last: Object = {}

        async def look() -> Object | None:
            nonlocal last
            last = await self.world.get(CLUSTER, name)
            return last if holds(last) else None

        try:
            found: Object = await until(look, what=f"cluster {name}", timeout=timeout)
        except BaseException:
            print(last.get("status"))  # noqa: T201 - for whoever reads the failure
            raise
        return found

    def is_collected(self, name: str) -> bool:
        return name in self.assembly.collection.accesses

    def token_in_use(self, name: str) -> str | None:
        """By which the cluster is collected."""
        return self.assembly.collection.accesses[name].token

    async def secrets(self) -> set[str]:
        page = await self.world.list(kinds.SECRETS, namespace=NAMESPACE)
        return {item["metadata"]["name"] for item in page.items}

    async def clear(self) -> None:
        """What a test has registered."""
        for item in (await self.world.list(CLUSTER)).items:
            await self.world.delete(CLUSTER, item["metadata"]["name"], missing_ok=True)
        for name in await self.secrets():
            await self.world.delete(kinds.SECRETS, name, namespace=NAMESPACE, missing_ok=True)

        async def gone() -> bool | None:
            return True if not list(self.assembly.known()) else None

        await until(gone, what="the end of all clusters")


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
    """Status and reason."""
    for each in cluster.get("status", {}).get("conditions", ()):
        if each["type"] == kind:
            return each["status"], each["reason"]
    return "", ""


def is_ready(cluster: Object) -> bool:
    return condition(cluster, "Ready") == ("True", "AsExpected")


async def grant_account(client: Client) -> None:
    """The account of container management, and its rights."""
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
    """Everything of it, until the end of the block, in the global cluster at `connection`."""
    async with Client(connection) as world:
        await grant_account(world)
        async with (
            Client(await identity(connection, rbac.ACCOUNT)) as client,
            stores.opened(str(index)) as opened,
        ):
            registry = CollectorRegistry()
            assembly = Assembly(
                client,
                opened,
                Whole(),
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
                await assembly.wait_synced()
                yield Management(assembly, world, index)
                running.cancel()
