"""Our kinds in a real API server, and objects of them that it accepts.

The definitions stay installed, and a test that needs them installs them again. Objects have the label of their test.
"""

import datetime as dt
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from kairship.kube import Client, Connection, Object, Resource, kinds
from kairship.resources import (
    DEFINITIONS,
    Instance,
    InstanceStatus,
    ObjectMeta,
    ReadyCount,
    Writer,
    admission_policies,
    crds,
)
from kairship.resources.instance_status import ClusterCount, Summary, Totals
from support.waiting import eventually

NOON = dt.datetime(2025, 6, 1, 12, 0, 0, tzinfo=dt.UTC)
SERVED = {
    each.kind: Resource.of(each.api_version, each.plural, kind=each.kind, namespaced=False) for each in DEFINITIONS
}
# Memberships first: they keep their clusters and instances from being deleted.
REMOVAL = ("Membership", "Cluster", "Instance", "Registration", "Product", "AccessBinding")


class Kube(Protocol):
    """The type of the session's fixture `kube`: the global cluster as its administrator."""

    @property
    def connection(self) -> Connection: ...


async def install(client: Client) -> None:
    for crd in crds():
        await client.apply_object(crd, field_manager="kairship")
    for definition in DEFINITIONS:

        async def served(resource: Resource = SERVED[definition.kind]) -> bool:
            await client.list(resource, limit=1)  # refused as long as the kind is unknown or its storage is set up
            return True

        await eventually(served, f"{definition.name} being served")
    for policy in admission_policies():
        await client.apply_object(policy, field_manager="kairship")


async def conditions_of_crd(client: Client, name: str) -> dict[str, str]:
    crd = await client.get(kinds.CRDS, name)
    return {each["type"]: each["status"] for each in crd.get("status", {}).get("conditions") or []}


@asynccontextmanager
async def own_objects(client: Client) -> AsyncIterator[str]:
    """Yields the prefix of the names of a test's objects, which is also their label. Deletes them at the end."""
    own = f"t{secrets.token_hex(3)}"
    try:
        yield own
    finally:
        for kind in REMOVAL:
            for obj in (await client.list(SERVED[kind], label_selector=f"test={own}")).items:
                name = obj["metadata"]["name"]
                if obj["metadata"].get("finalizers"):
                    await client.patch(SERVED[kind], name, {"metadata": {"finalizers": None}})
                await delete_when_allowed(client, SERVED[kind], name)


async def delete_when_allowed(client: Client, resource: Resource, name: str) -> None:
    """Repeats the deletion: the API server notices with a delay that a membership is gone."""

    async def deleted() -> bool:
        await client.delete(resource, name, missing_ok=True)
        return True

    await eventually(deleted, f"the deletion of {name} being allowed")


def labelled(own: str, kind: str, name: str, **content: Any) -> Object:
    [definition] = [each for each in DEFINITIONS if each.kind == kind]
    metadata = {"name": name, "labels": {"test": own}}
    return {"apiVersion": definition.api_version, "kind": kind, "metadata": metadata, **content}


def instance(own: str, name: str | None = None, **spec: Any) -> Object:
    return labelled(own, "Instance", name or own, spec={"driver": "local", **spec})


def cluster(own: str, name: str | None = None, **spec: Any) -> Object:
    return labelled(own, "Cluster", name or own, spec={"credentials": {"name": "c"}, **spec})


def membership(own: str, name: str | None = None, **spec: Any) -> Object:
    return labelled(own, "Membership", name or own, spec={"instance": own, **spec})


def registration(own: str, name: str | None = None, **spec: Any) -> Object:
    spec = {"product": "kairship", "resourceType": "instance", "resource": own, "uid": "u1", **spec}
    return labelled(own, "Registration", name or f"kairship.instance.{own}", spec=spec)


def product(own: str, name: str | None = None) -> Object:
    actions = [{"name": "view", "description": "See it."}]
    return labelled(own, "Product", name or own, spec={"resourceTypes": [{"name": "instance", "actions": actions}]})


def binding(own: str, **spec: Any) -> Object:
    whole = {
        "subject": {"kind": "User", "id": "alice"},
        "role": {"id": "instance-editor"},
        "permissions": ["kairship.instance.view"],
        "scope": {"level": "Instance", "instance": own, "instanceUid": "u1"},
        "origin": {"kind": "Workspace", "id": "7", "displayName": "Shop"},
        "sequence": 5,
    }
    return labelled(own, "AccessBinding", own, spec=whole | spec)


def samples(own: str) -> list[Object]:
    """Returns valid objects, from the smallest to the largest possible spec."""
    taint = {"key": "maintenance", "value": "soon", "effect": "NoSchedule"}
    return [
        instance(own),
        instance(own, f"{own}-adopted", driver="external", kubeconfigSecret={"name": "adopted"}),
        instance(own, f"{own}{'x' * (60 - len(own))}", alias="Longest name"),
        instance(own, f"{own}{'x' * (34 - len(own))}", driver="operator", hostCluster={"name": "east"}),
        instance(
            own,
            f"{own}-full",
            version="v1.18.2",
            description="All there is.",
            failover={"enabled": True, "clusterMonitorPeriodSeconds": 10},
            descheduler={"enabled": True, "intervalSeconds": 60},
            metricsAdapter={"enabled": True},
            search={"enabled": True},
            releaseOnDelete=True,
            backups=[{"name": "monday"}, {"name": "tuesday"}],
            restore={"request": "2025-06-01T12:00:00Z", "backup": "monday"},
        ),
        cluster(own),
        cluster(own, f"k-{own}", virtual=True),
        cluster(
            own, f"{own}{'x' * (48 - len(own))}", zones=["a", "b"], taints=[taint], endpoint="https://10.0.0.1:6443/x"
        ),
        membership(own),
        membership(own, f"{own}-kept", onRemove="Keep", force=True),
        registration(own),
        registration(
            own,
            f"kairship.namespace.{own}.shop",
            resourceType="namespace",
            resource="shop",
            parent={"resourceType": "instance", "name": own},
        ),
        product(own),
        binding(own),
    ]


def summary(*, total: int, ready: int) -> Summary:
    return Summary(
        observed_at=NOON,
        clusters=ClusterCount(total=total, ready=ready, stale=total - ready),
        current=Totals(nodes=ReadyCount(total=3, ready=3), allocatable={"cpu": "96", "memory": "192Gi"}),
        stale=Totals(nodes=ReadyCount(total=0, ready=0)),
        workloads={"Deployment": ReadyCount(total=2, ready=1)},
    )


def status_patch(read: Instance, status: InstanceStatus) -> dict[str, Any]:
    """The fields of a status writer, with the version of the object that the writer has read."""
    seen = ObjectMeta(name=read.name, uid=read.metadata.uid, resource_version=read.metadata.resource_version)
    return {"apiVersion": read.api_version, "kind": read.kind, "metadata": seen, "status": status}


async def write_status(client: Client, name: str, writer: Writer, status: InstanceStatus) -> Instance:
    read = await client.typed(Instance).get(SERVED["Instance"], name)
    return await client.typed(Instance).apply(
        SERVED["Instance"],
        status_patch(read, status),
        field_manager=writer,
        force=False,
        subresource="status",
    )
