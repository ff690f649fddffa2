"""The Workspace service: assignments, who sees them, and changing them by calls to global management as the caller."""

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from protobuf import Message
from support.services import ALICE, Api, refused, services_of

from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy, SortDir
from kairship.gen.kairship.workspace.v1alpha1.workspace_pb import (
    Action,
    BindInstancesResponse,
    BindNamespaceInstancesResponse,
    ListInstancesResponse,
    ListNamespaceInstancesResponse,
    ListWorkspacesResponse,
    WorkspaceInfo,
)
from kairship.ghippo.database import Database
from kairship.ghippo.identity import users
from kairship.ghippo.services.workspaces import Workspaces
from kairship.ghippo.tenancy import bindings, registered_instances, workspaces
from kairship.kube import kinds
from kairship.resources import Coverage
from kairship.rpc.calls import Call
from kairship.rpc.errors import Code
from kairship.rpc.service_registry import ServiceRegistry
from kairship.rpc.sight import Sight
from kairship.wire import Method

pytestmark = pytest.mark.asyncio(loop_scope="module")


class InThisProcess:
    """Global management in the process of the test, without a channel."""

    def __init__(self, database: Database) -> None:
        self._registry = ServiceRegistry({"kairship.ghippo.v1alpha1.Workspaces": Workspaces(database)})

    async def unary(self, method: Method, request: Message[Any], call: Call) -> Message[Any]:
        handler = self._registry.unary(method)
        assert handler is not None
        return await handler(request, call)

    async def stream(self, method: Method, request: Message[Any], call: Call) -> AsyncGenerator[Message[Any], None]:
        raise NotImplementedError
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database(plane: EmbeddedPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Database]:
    """Alice administers the platform; `shop` and `bank` are workspaces, Bob is a viewer of `shop`."""
    database = Database(f"sqlite:///{tmp_path_factory.mktemp('ghippo') / 'ghippo.db'}")
    await database.open()

    async def do(work: Any, **named: Any) -> Any:
        return await database.write(lambda connection: work(connection, at=int(time.time()), **named))

    await do(registered_instances.register, name="demo", uid=await plane.instance_uid())
    shop = await do(workspaces.create, name="shop", alias="The shop", folder=None)
    await do(workspaces.create, name="bank", alias="", folder=None)
    bob = await do(users.create, name="bob")
    target = bindings.Target(kind="Workspace", id=str(shop))
    await do(bindings.create, subject_kind="User", subject_id=bob, role="viewer", target=target)
    alice = await do(users.create, name="alice")
    everything = bindings.Target(kind="Platform", id="")
    await do(bindings.create, subject_kind="User", subject_id=alice, role="platform-admin", target=everything)
    database.alice, database.bob = alice, bob  # type: ignore[attr-defined]
    yield database
    await database.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(plane: EmbeddedPlane, database: Database) -> AsyncIterator[Api]:
    async with services_of(plane, ghippo=InThisProcess(database)) as api:
        api.caller = type(ALICE)(id=database.alice, name="Alice")  # type: ignore[attr-defined]
        yield api


SHOP, BANK = WorkspaceInfo(workspace="shop", workspace_id=1), WorkspaceInfo(workspace="bank", workspace_id=2)
BY_NAME = {"sort_by": SortBy.field_name, "sort_dir": SortDir.asc}


async def holder(api: Api) -> WorkspaceInfo | None:
    found = await api("Workspace.ListInstances", ListInstancesResponse, instance="demo")
    [demo] = [item for item in found.items if item.instance == "demo"]
    return demo.workspace


async def test_users_see_their_own_workspaces(api: Api, database: Database) -> None:
    found = await api("Workspace.ListWorkspaces", ListWorkspacesResponse, **BY_NAME)
    assert found.items == [BANK, SHOP]
    searched = await api("Workspace.ListWorkspaces", ListWorkspacesResponse, workspace="ba")
    assert searched.items == [BANK]
    alice, api.caller = api.caller, type(ALICE)(id=database.bob, name="Bob")  # type: ignore[attr-defined]
    found = await api("Workspace.ListWorkspaces", ListWorkspacesResponse)
    assert (found.items, found.pagination and found.pagination.total) == ([SHOP], 1)
    api.caller = alice


async def test_an_instance_is_bound_to_a_workspace_and_unbound(api: Api) -> None:
    bind = "Workspace.BindInstances"
    assert await holder(api) is None
    for _ in range(2):
        done = await api(bind, BindInstancesResponse, instance="demo", workspace=SHOP, action=Action.BIND)
        assert done.workspace == SHOP
    assert await holder(api) == SHOP
    with refused(Code.ALREADY_EXISTS):
        await api(bind, BindInstancesResponse, instance="demo", workspace=BANK, action=Action.BIND)
    with refused(Code.FAILED_PRECONDITION):
        await api(bind, BindInstancesResponse, instance="demo", workspace=BANK, action=Action.UNBIND)
    await api(bind, BindInstancesResponse, instance="demo", workspace=SHOP, action=Action.UNBIND)
    assert await holder(api) is None
    with refused(Code.NOT_FOUND, "no workspace 9"):
        other = WorkspaceInfo(workspace_id=9)
        await api(bind, BindInstancesResponse, instance="demo", workspace=other, action=Action.BIND)
    with refused(Code.INVALID_ARGUMENT):
        await api(bind, BindInstancesResponse, instance="demo", action=Action.BIND)
    with refused(Code.NOT_FOUND, "no instance nobody"):
        await api(bind, BindInstancesResponse, instance="nobody", workspace=SHOP, action=Action.BIND)


async def test_a_namespace_is_bound_to_a_workspace_and_unbound(api: Api) -> None:
    own = f"ws-{uuid.uuid4().hex[:6]}"
    where = {"instance": "demo", "namespace": own}
    bind, instance = "Workspace.BindNamespaceInstances", await api.instance()
    with refused(Code.NOT_FOUND, "has no namespace"):
        await api(bind, BindNamespaceInstancesResponse, workspace=BANK, action=Action.BIND, **where)
    await instance.create(kinds.NAMESPACES, {"metadata": {"name": own}})
    try:

        async def held_by() -> list[WorkspaceInfo | None]:
            found = await api("Workspace.ListNamespaceInstances", ListNamespaceInstancesResponse, **where)
            return [item.workspace for item in found.items]

        assert await held_by() == [None]
        await api(bind, BindNamespaceInstancesResponse, workspace=BANK, action=Action.BIND, **where)
        assert await held_by() == [BANK]
        assert await holder(api) is None
        await api(bind, BindNamespaceInstancesResponse, workspace=BANK, action=Action.UNBIND, **where)
        assert await held_by() == [None]
    finally:
        await instance.delete(kinds.NAMESPACES, own)


async def test_only_what_is_in_sight_is_listed(api: Api) -> None:
    api.sight, before = (
        Sight(coverage=Coverage(namespaces={"demo": frozenset({"default", "karmada-system"})})),
        api.sight,
    )
    found = await api("Workspace.ListNamespaceInstances", ListNamespaceInstancesResponse, page_size=-1)
    assert [(item.instance, item.namespace) for item in found.items] == [("demo", "default")]
    api.sight = Sight()
    assert (await api("Workspace.ListInstances", ListInstancesResponse)).items == []
    for name in ("demo", "nobody"):
        with refused(Code.NOT_FOUND, f"^there is no instance {name}$"):
            await api("Workspace.ListNamespaceInstances", ListNamespaceInstancesResponse, instance=name)
    api.sight = before
