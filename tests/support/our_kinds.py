"""Our kinds for tests against a real API server: installed, with objects that it accepts.

The definitions stay installed; whoever needs them installs them again. Objects carry the name and label of their test.
"""

import asyncio
import datetime as dt
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from kairship.kube import Client, Connection, Forbidden, NotFound, Object, Resource, TooManyRequests, kinds
from kairship.resources import (
    DEFINITIONS,
    Instance,
    InstanceStatus,
    ReadyCount,
    Writer,
    admission_policies,
    crds,
    status_patch,
)
from kairship.resources.instance_status import ClusterCount, Summary, Totals
from support.waiting import PATIENCE

NOON = dt.datetime(2025, 6, 1, 12, 0, 0, tzinfo=dt.UTC)
SERVED = {
    each.kind: Resource.of(each.api_version, each.plural, kind=each.kind, namespaced=False) for each in DEFINITIONS
}
# Members before what they hold on to.
REMOVAL = ("Membership", "Cluster", "Instance", "Registration", "Product", "AccessBinding")


class Kube(Protocol):
    """What the session's `kube` fixture gives: the global cluster and its administrator."""

    @property
    def connection(self) -> Connection: ...


async def until(holds: Callable[[], Awaitable[bool]], *, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await holds():
        assert time.monotonic() < deadline, f"{what} within {PATIENCE} s"
        await asyncio.sleep(0.1)


async def install(client: Client) -> None:
    for crd in crds():
        await client.apply_object(crd, field_manager="kairship")
    for definition in DEFINITIONS:

        async def served(resource: Resource = SERVED[definition.kind]) -> bool:
            try:
                await client.list(resource, limit=1)
            except (NotFound, TooManyRequests):  # not yet; or its storage is being set up
                return False
            return True

        await until(served, what=f"{definition.name} served")
    for policy in admission_policies():
        await client.apply_object(policy, field_manager="kairship")


async def conditions_of_crd(client: Client, name: str) -> dict[str, str]:
    crd = await client.get(kinds.CRDS, name)
    return {each["type"]: each["status"] for each in crd.get("status", {}).get("conditions") or []}


@asynccontextmanager
async def own_objects(client: Client) -> AsyncIterator[str]:
    """The beginning of the names of a test's objects, and the label that they all have; they go when it ends."""
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
    """The API server learns that a membership is gone a moment later than we do."""

    async def gone() -> bool:
        try:
            await client.delete(resource, name, missing_ok=True)
        except Forbidden:
            return False
        return True

    await until(gone, what=f"{name} may be deleted")


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
    """Objects that are fine: the least and the most that somebody writes."""
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


async def write_status(client: Client, name: str, writer: Writer, status: InstanceStatus) -> Instance:
    read = await client.get(SERVED["Instance"], name, as_type=Instance)
    return await client.apply(
        SERVED["Instance"],
        status_patch(read, status),
        field_manager=writer,
        force=False,
        subresource="status",
        as_type=Instance,
    )
