"""Services write in an instance and read in members as the caller, so the RBAC there authorises the caller too."""

import json
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from protobuf.wkt import Empty
from support.instance_rights import grant
from support.manifests import deployment
from support.services import Api, refused
from support.waiting import PATIENCE, eventually

from kairship.access import Role
from kairship.apiserver.services import instance_clients
from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import (
    CreateDeploymentResponse,
    ListMemberClusterAllDeploymentsResponse,
    ListMemberClusterDeploymentsResponse,
    PatchDeploymentResponse,
    UpdateDeploymentResponse,
)
from kairship.kube import Client, kinds
from kairship.resources import Coverage
from kairship.rpc.calls import Caller
from kairship.rpc.errors import Code
from kairship.rpc.sight import EVERYTHING, Sight

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBER = "frankfurt"


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(api: Api) -> AsyncIterator[str]:
    name, instance = f"acting-{uuid.uuid4().hex[:6]}", await api.instance()
    await instance.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    yield name
    await instance.delete(kinds.NAMESPACES, name)


@pytest.fixture
def mallory(api: Api) -> Caller:
    """A caller whom the entrance has authorised by mistake, or a moment too early."""
    return Caller(id=f"u-{uuid.uuid4().hex[:8]}", name="Mallory")


async def test_the_instance_authorises_the_caller_too(
    api: Api, namespace: str, mallory: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"instance": "demo", "namespace": namespace}
    manifest = json.dumps(deployment("web"))
    await api("Apps.CreateDeployment", CreateDeploymentResponse, data=manifest, **where)
    monkeypatch.setattr(instance_clients, "_RIGHTS_DELAY", 0.3)
    alice, api.caller = api.caller, mallory
    try:
        for name, reply, fields in (
            ("Apps.CreateDeployment", CreateDeploymentResponse, {"data": json.dumps(deployment("other"))}),
            ("Apps.UpdateDeployment", UpdateDeploymentResponse, {"name": "web", "data": manifest}),
            ("Apps.PatchDeployment", PatchDeploymentResponse, {"name": "web", "data": "{spec: {replicas: 7}}"}),
            ("Apps.DeleteDeployment", Empty, {"name": "web"}),
        ):
            with refused(Code.PERMISSION_DENIED, "^instance demo does not let you do this"):
                await api(name, reply, **where, **fields)
        instance: Client = await api.instance()
        await grant(instance, mallory.id, Role.EDITOR, namespace=namespace)
        # How soon the API server hears of the right depends on the machine.
        monkeypatch.setattr(instance_clients, "_RIGHTS_DELAY", PATIENCE)
        await api("Apps.DeleteDeployment", Empty, name="web", **where)
        with refused(Code.PERMISSION_DENIED):
            monkeypatch.setattr(instance_clients, "_RIGHTS_DELAY", 0.3)
            elsewhere = {"instance": "demo", "namespace": "default", "data": json.dumps(deployment("other"))}
            await api("Apps.CreateDeployment", CreateDeploymentResponse, **elsewhere)
    finally:
        api.caller = alice


async def test_the_member_authorises_the_caller_too(
    api: Api, plane: EmbeddedPlane, namespace: str, mallory: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists are read in the member itself here: these services have no index."""
    where = {"instance": "demo", "cluster": MEMBER}
    one, every = "Apps.ListMemberClusterDeployments", "Apps.ListMemberClusterAllDeployments"
    instance = await api.instance()
    alice, api.caller = api.caller, mallory
    monkeypatch.setattr(instance_clients, "_RIGHTS_DELAY", 0.3)
    try:
        async with Client(await plane.members.connection(MEMBER)) as member:
            await eventually(lambda: member.get(kinds.NAMESPACES, namespace), "the namespace in the member")
            await member.create(kinds.DEPLOYMENTS, deployment("theirs"), namespace=namespace)
            with refused(Code.PERMISSION_DENIED, "^instance demo does not let you do this"):
                await api(one, ListMemberClusterDeploymentsResponse, **where, namespace=namespace)
            with refused(Code.PERMISSION_DENIED, "^instance demo does not let you do this"):
                await api(every, ListMemberClusterAllDeploymentsResponse, **where)
            with refused(Code.NOT_FOUND):
                await api(every, ListMemberClusterAllDeploymentsResponse, instance="demo", cluster="nowhere")
            await grant(instance, mallory.id, Role.VIEWER, clusters=[MEMBER])
            await grant(member, mallory.id, Role.VIEWER, namespace=namespace)
            monkeypatch.setattr(instance_clients, "_RIGHTS_DELAY", PATIENCE)
            found = await api(one, ListMemberClusterDeploymentsResponse, **where, namespace=namespace)
            assert [each.metadata.name for each in found.items if each.metadata] == ["theirs"]
            # A right on a namespace that the member does not have is no reason to refuse the others.
            held = frozenset({namespace, f"{namespace}-none"})
            api.sight = Sight(coverage=Coverage(namespaces={"demo": held}))
            everywhere = await api(every, ListMemberClusterAllDeploymentsResponse, **where)
            assert [each.metadata.name for each in everywhere.items if each.metadata] == ["theirs"]
    finally:
        api.caller, api.sight = alice, EVERYTHING
