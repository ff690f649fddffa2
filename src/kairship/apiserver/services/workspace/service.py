"""The service of the protos: workspaces, what they hold, and what none of them holds yet."""

import asyncio
import itertools
from collections.abc import Iterable

from kairship.apiserver.authorisation import no_instance
from kairship.apiserver.services.reach import Reach
from kairship.apiserver.services.workspace.global_management import GlobalManagement, Held, Holding
from kairship.gen.kairship.ghippo.v1alpha1.workspace_pb import Workspace
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.gen.kairship.workspace.v1alpha1.workspace_pb import (
    Action,
    BindInstancesRequest,
    BindInstancesResponse,
    BindNamespaceInstancesRequest,
    BindNamespaceInstancesResponse,
    ListInstancesRequest,
    ListInstancesResponse,
    ListNamespaceInstancesRequest,
    ListNamespaceInstancesResponse,
    ListWorkspacesRequest,
    ListWorkspacesResponse,
    NamespaceInstance,
    WorkspaceInfo,
    WorkspaceInstance,
)
from kairship.kube import KubeError, kinds
from kairship.reconcile import MetadataOnly
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import ApiError, FailedPrecondition, InvalidArgument, NotFound
from kairship.rpc.listing import Order, page_of
from kairship.rpc.own_kinds import OwnKinds

_WORKSPACES: Order[Workspace] = Order(name=lambda found: found.name, created=lambda found: found.created_at)
_INSTANCES: Order[str] = Order(name=lambda name: name, created=lambda name: name)
_NAMESPACES: Order[Held] = Order(
    name=lambda held: (held[1], held[0]), created=lambda held: held, keys={SortBy.namespace: lambda held: held[1]}
)


class WorkspaceService:
    """kairship.v1alpha1.Workspace."""

    def __init__(self, own: OwnKinds, reach: Reach, management: GlobalManagement) -> None:
        self._own = own
        self._reach = reach
        self._management = management

    async def list_workspaces(self, request: ListWorkspacesRequest, call: Call) -> ListWorkspacesResponse:
        found = await self._management.workspaces(call, search=request.workspace)
        items, pagination = page_of(found, _WORKSPACES, request)
        return ListWorkspacesResponse(items=[_info(each) for each in items], pagination=pagination)

    async def list_instances(self, request: ListInstancesRequest, call: Call) -> ListInstancesResponse:
        seen = [name for name in await self._instances(call) if request.instance in name]
        items, pagination = page_of(seen, _INSTANCES, request)
        holdings = await self._management.holdings(call) if items else {}
        return ListInstancesResponse(
            items=[WorkspaceInstance(instance=name, workspace=_holder((name, ""), holdings)) for name in items],
            pagination=pagination,
        )

    async def list_namespace_instances(
        self, request: ListNamespaceInstancesRequest, call: Call
    ) -> ListNamespaceInstancesResponse:
        instances = await self._instances(call)
        if request.instance:
            if request.instance not in instances:
                raise no_instance(request.instance)
            instances = [request.instance]
        lists = await asyncio.gather(*(self._namespaces(instance, call) for instance in instances))
        found = [held for held in itertools.chain(*lists) if request.namespace in held[1]]
        items, pagination = page_of(found, _NAMESPACES, request)
        holdings = await self._management.holdings(call) if items else {}
        return ListNamespaceInstancesResponse(
            items=[
                NamespaceInstance(instance=held[0], namespace=held[1], workspace=_holder(held, holdings))
                for held in items
            ],
            pagination=pagination,
        )

    async def bind_instances(self, request: BindInstancesRequest, call: Call) -> BindInstancesResponse:
        await self._own.instances.require(request.instance, call)
        workspace = await self._move((request.instance, ""), request.workspace, request.action, call)
        return BindInstancesResponse(instance=request.instance, workspace=workspace, action=request.action)

    async def bind_namespace_instances(
        self, request: BindNamespaceInstancesRequest, call: Call
    ) -> BindNamespaceInstancesResponse:
        await self._own.instances.require(request.instance, call)
        held = (request.instance, request.namespace)
        if request.action is Action.BIND and held not in await self._namespaces(request.instance, call, strict=True):
            raise NotFound(f"instance {request.instance} has no namespace {request.namespace}; create it first")
        workspace = await self._move(held, request.workspace, request.action, call)
        return BindNamespaceInstancesResponse(
            instance=request.instance, namespace=request.namespace, workspace=workspace, action=request.action
        )

    async def _move(self, held: Held, named: WorkspaceInfo | None, action: Action, call: Call) -> WorkspaceInfo:
        """Twice is as good as once."""
        holding = (await self._management.holdings(call)).get(held)
        if action is Action.UNBIND:
            if holding is None or (named is not None and not _is_named(holding.workspace, named)):
                raise FailedPrecondition("the workspace does not hold it; list where it is first")
            await self._management.let_go(holding, call)
            return _info(holding.workspace)
        workspace = _pick(await self._management.workspaces(call), named)
        if holding is None or holding.workspace.id != workspace.id:
            await self._management.hold(workspace.id, held, call)
        return _info(workspace)

    async def _instances(self, call: Call) -> list[str]:
        reach = call.sight.reach
        return [
            seen.metadata.name for seen in await self._own.instances.all(call) if reach.includes(seen.metadata.name)
        ]

    async def _namespaces(self, instance: str, call: Call, *, strict: bool = False) -> list[Held]:
        """One instance that does not answer does not keep the others from being listed, unless it is the only one
        that is asked about."""
        visible = call.sight.within(instance)
        try:
            page = await self._reach.instance(instance).list(
                kinds.NAMESPACES, as_type=MetadataOnly, timeout=patience(call)
            )
        except (KubeError, ApiError):
            if strict:
                raise
            call.warn(f"instance {instance} does not answer; its namespaces are not in the list")
            return []
        return [(instance, each.metadata.name) for each in page.items if visible.includes(each.metadata.name)]


def _info(workspace: Workspace) -> WorkspaceInfo:
    return WorkspaceInfo(workspace=workspace.name, workspace_id=int(workspace.id))


def _holder(held: Held, holdings: dict[Held, Holding]) -> WorkspaceInfo | None:
    holding = holdings.get(held)
    return _info(holding.workspace) if holding else None


def _is_named(workspace: Workspace, named: WorkspaceInfo) -> bool:
    return named.workspace_id in (0, int(workspace.id)) and named.workspace in ("", workspace.name)


def _pick(workspaces: Iterable[Workspace], named: WorkspaceInfo | None) -> Workspace:
    if named is None or not (named.workspace_id or named.workspace):
        raise InvalidArgument(violations=[("workspace", "name the workspace that shall hold it, or give its id")])
    for workspace in workspaces:
        if _is_named(workspace, named):
            return workspace
    raise NotFound(f"there is no workspace {named.workspace or named.workspace_id}")
