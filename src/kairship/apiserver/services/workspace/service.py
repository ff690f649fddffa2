"""The methods of the Workspace service: listing workspaces and assignments, and changing assignments."""

import asyncio
import itertools
from collections.abc import Iterable

from kairship.apiserver.auth.authorisation import no_instance
from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.apiserver.services.workspace.global_management import Assignment, GlobalManagement, ResourceKey
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
from kairship.rpc.resource_cache import ResourceCaches

_WORKSPACES: Order[Workspace] = Order(name=lambda found: found.name, created=lambda found: found.created_at)
_INSTANCES: Order[str] = Order(name=lambda name: name, created=lambda name: name)
_NAMESPACES: Order[ResourceKey] = Order(
    name=lambda key: (key[1], key[0]), created=lambda key: key, keys={SortBy.namespace: lambda key: key[1]}
)


class WorkspaceService:
    """kairship.v1alpha1.Workspace."""

    def __init__(self, caches: ResourceCaches, clients: InstanceClients, management: GlobalManagement) -> None:
        self._caches = caches
        self._clients = clients
        self._management = management

    async def list_workspaces(self, request: ListWorkspacesRequest, call: Call) -> ListWorkspacesResponse:
        found = await self._management.workspaces(call, search=request.workspace)
        items, pagination = page_of(found, _WORKSPACES, request)
        return ListWorkspacesResponse(items=[_info(each) for each in items], pagination=pagination)

    async def list_instances(self, request: ListInstancesRequest, call: Call) -> ListInstancesResponse:
        seen = [name for name in await self._instances(call) if request.instance in name]
        items, pagination = page_of(seen, _INSTANCES, request)
        assignments = await self._management.assignments(call) if items else {}
        return ListInstancesResponse(
            items=[
                WorkspaceInstance(instance=name, workspace=_workspace_of((name, ""), assignments)) for name in items
            ],
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
        found = [key for key in itertools.chain(*lists) if request.namespace in key[1]]
        items, pagination = page_of(found, _NAMESPACES, request)
        assignments = await self._management.assignments(call) if items else {}
        return ListNamespaceInstancesResponse(
            items=[
                NamespaceInstance(instance=key[0], namespace=key[1], workspace=_workspace_of(key, assignments))
                for key in items
            ],
            pagination=pagination,
        )

    async def bind_instances(self, request: BindInstancesRequest, call: Call) -> BindInstancesResponse:
        await self._caches.instances.require(request.instance, call)
        workspace = await self._assign((request.instance, ""), request.workspace, request.action, call)
        return BindInstancesResponse(instance=request.instance, workspace=workspace, action=request.action)

    async def bind_namespace_instances(
        self, request: BindNamespaceInstancesRequest, call: Call
    ) -> BindNamespaceInstancesResponse:
        await self._caches.instances.require(request.instance, call)
        key = (request.instance, request.namespace)
        if request.action is Action.BIND and key not in await self._namespaces(request.instance, call, strict=True):
            raise NotFound(f"instance {request.instance} has no namespace {request.namespace}; create it first")
        workspace = await self._assign(key, request.workspace, request.action, call)
        return BindNamespaceInstancesResponse(
            instance=request.instance, namespace=request.namespace, workspace=workspace, action=request.action
        )

    async def _assign(self, key: ResourceKey, named: WorkspaceInfo | None, action: Action, call: Call) -> WorkspaceInfo:
        """Binds or unbinds. Binding is idempotent."""
        assignment = (await self._management.assignments(call)).get(key)
        if action is Action.UNBIND:
            if assignment is None or (named is not None and not _is_named(assignment.workspace, named)):
                raise FailedPrecondition("the workspace does not hold it: list first which workspace does")
            await self._management.unassign(assignment, call)
            return _info(assignment.workspace)
        workspace = _pick(await self._management.workspaces(call), named)
        if assignment is None or assignment.workspace.id != workspace.id:
            await self._management.assign(workspace.id, key, call)
        return _info(workspace)

    async def _instances(self, call: Call) -> list[str]:
        reach = call.sight.coverage
        return [
            seen.metadata.name for seen in await self._caches.instances.all(call) if reach.includes(seen.metadata.name)
        ]

    async def _namespaces(self, instance: str, call: Call, *, strict: bool = False) -> list[ResourceKey]:
        """Lists the visible namespaces. An instance that does not answer has none, with a warning; `strict` raises."""
        visible = call.sight.within(instance)
        try:
            page = (
                await self._clients.instance(instance)
                .typed(MetadataOnly)
                .list(kinds.NAMESPACES, timeout=patience(call))
            )
        except (KubeError, ApiError):
            if strict:
                raise
            call.warn(f"instance {instance} does not answer; its namespaces are not in the list")
            return []
        return [(instance, each.metadata.name) for each in page.items if visible.includes(each.metadata.name)]


def _info(workspace: Workspace) -> WorkspaceInfo:
    return WorkspaceInfo(workspace=workspace.name, workspace_id=int(workspace.id))


def _workspace_of(key: ResourceKey, assignments: dict[ResourceKey, Assignment]) -> WorkspaceInfo | None:
    assignment = assignments.get(key)
    return _info(assignment.workspace) if assignment else None


def _is_named(workspace: Workspace, named: WorkspaceInfo) -> bool:
    return named.workspace_id in (0, int(workspace.id)) and named.workspace in ("", workspace.name)


def _pick(workspaces: Iterable[Workspace], named: WorkspaceInfo | None) -> Workspace:
    if named is None or not (named.workspace_id or named.workspace):
        raise InvalidArgument(violations=[("workspace", "give the name or the id of the workspace")])
    for workspace in workspaces:
        if _is_named(workspace, named):
            return workspace
    raise NotFound(f"there is no workspace {named.workspace or named.workspace_id}")
