"""Calls to the published workspace API of global management, made in the name of the caller."""

import asyncio
from typing import Any, TypeVar

import msgspec
from protobuf import Message

from kairship.gen.kairship.ghippo.v1alpha1.workspace_pb import (
    AddWorkspaceResourceRequest,
    ListWorkspaceResourcesRequest,
    ListWorkspaceResourcesResponse,
    ListWorkspacesRequest,
    ListWorkspacesResponse,
    RemoveWorkspaceResourceRequest,
    Workspace,
)
from kairship.rpc.calls import Call
from kairship.rpc.errors import NotFound, Unavailable
from kairship.rpc.service_registry import Backend
from kairship.wire import methods

_SERVICE = "/kairship.ghippo.v1alpha1.Workspaces/"
_ALL = -1
_MAX_CONCURRENT = 8

ResourceKey = tuple[str, str]
"""An instance and one of its namespaces, which is empty for the whole instance."""

M = TypeVar("M", bound=Message[Any])


class Assignment(msgspec.Struct, frozen=True):
    """The assignment of an instance or a namespace to a workspace."""

    id: str
    workspace: Workspace


class GlobalManagement:
    def __init__(self, backend: Backend | None) -> None:
        """`backend` is None if this plane runs without global management."""
        self._backend = backend

    async def workspaces(self, call: Call, *, search: str = "") -> list[Workspace]:
        """Returns the workspaces that the caller can see."""
        request = ListWorkspacesRequest(page_size=_ALL, search=search)
        return (await self._call("ListWorkspaces", request, ListWorkspacesResponse, call)).items

    async def assignments(self, call: Call) -> dict[ResourceKey, Assignment]:
        """Returns the assignments to workspaces that the caller can see. A resource has at most one."""
        found: dict[ResourceKey, Assignment] = {}
        limit = asyncio.Semaphore(_MAX_CONCURRENT)

        async def read(workspace: Workspace) -> None:
            request = ListWorkspaceResourcesRequest(workspace=workspace.id)
            async with limit:
                try:
                    reply = await self._call("ListWorkspaceResources", request, ListWorkspaceResourcesResponse, call)
                except NotFound:  # it has been deleted meanwhile
                    return
            held = (each for each in reply.items if each.instance)  # the others are clusters
            found.update({(each.instance, each.namespace): Assignment(each.id, workspace) for each in held})

        await asyncio.gather(*(read(workspace) for workspace in await self.workspaces(call)))
        return found

    async def assign(self, workspace: str, resource: ResourceKey, call: Call) -> None:
        instance, namespace = resource
        request = AddWorkspaceResourceRequest(workspace=workspace, instance=instance, namespace=namespace)
        await self._call("AddWorkspaceResource", request, Message, call)

    async def unassign(self, assignment: Assignment, call: Call) -> None:
        request = RemoveWorkspaceResourceRequest(workspace=assignment.workspace.id, id=assignment.id)
        await self._call("RemoveWorkspaceResource", request, Message, call)

    async def _call(self, name: str, request: Message[Any], reply: type[M], call: Call) -> M:
        if self._backend is None:
            raise Unavailable("this plane runs without global management, so it has no workspaces")
        found = await self._backend.unary(methods()[_SERVICE + name], request, call)
        if not isinstance(found, reply):
            raise TypeError(f"{name} was answered with a {type(found).__name__}")
        return found
