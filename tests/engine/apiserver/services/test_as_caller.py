"""Services write in an instance as the caller, so the RBAC of the instance authorises the caller too."""

import json
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from protobuf.wkt import Empty
from support.instance_rights import grant
from support.manifests import deployment
from support.services import Api, refused
from support.waiting import PATIENCE

from kairship.access import Role
from kairship.apiserver.services import instance_clients
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import (
    CreateDeploymentResponse,
    PatchDeploymentResponse,
    UpdateDeploymentResponse,
)
from kairship.kube import Client, kinds
from kairship.rpc.calls import Caller
from kairship.rpc.errors import Code

pytestmark = pytest.mark.asyncio(loop_scope="module")


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
