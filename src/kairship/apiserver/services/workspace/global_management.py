"""What is asked of global management about workspaces, through its published API and for the person who asks here."""

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
from kairship.rpc.registry import Owner
from kairship.wire import methods

_SERVICE = "/kairship.ghippo.v1alpha1.Workspaces/"
_ALL = -1
_AT_ONCE = 8

Held = tuple[str, str]
"""An instance and a namespace of it, which is empty for the whole instance."""

M = TypeVar("M", bound=Message[Any])


class Holding(msgspec.Struct, frozen=True):
    id: str
    workspace: Workspace


class GlobalManagement:
    def __init__(self, owner: Owner | None) -> None:
        """None if this plane has none."""
        self._owner = owner

    async def workspaces(self, call: Call, *, search: str = "") -> list[Workspace]:
        """Those that the caller can see."""
        request = ListWorkspacesRequest(page_size=_ALL, search=search)
        return (await self._ask("ListWorkspaces", request, ListWorkspacesResponse, call)).items

    async def holdings(self, call: Call) -> dict[Held, Holding]:
        """What is held by workspaces that the caller can see. The same thing is held by one only."""
        found: dict[Held, Holding] = {}
        room = asyncio.Semaphore(_AT_ONCE)

        async def look(workspace: Workspace) -> None:
            request = ListWorkspaceResourcesRequest(workspace=workspace.id)
            async with room:
                try:
                    reply = await self._ask("ListWorkspaceResources", request, ListWorkspaceResourcesResponse, call)
                except NotFound:  # it went away in between
                    return
            found.update({(each.instance, each.namespace): Holding(each.id, workspace) for each in reply.items})

        await asyncio.gather(*(look(workspace) for workspace in await self.workspaces(call)))
        return found

    async def hold(self, workspace: str, held: Held, call: Call) -> None:
        instance, namespace = held
        request = AddWorkspaceResourceRequest(workspace=workspace, instance=instance, namespace=namespace)
        await self._ask("AddWorkspaceResource", request, Message, call)

    async def let_go(self, holding: Holding, call: Call) -> None:
        request = RemoveWorkspaceResourceRequest(workspace=holding.workspace.id, id=holding.id)
        await self._ask("RemoveWorkspaceResource", request, Message, call)

    async def _ask(self, name: str, request: Message[Any], reply: type[M], call: Call) -> M:
        if self._owner is None:
            raise Unavailable("this plane runs without global management, so there are no workspaces")
        found = await self._owner.unary(methods()[_SERVICE + name], request, call)
        if not isinstance(found, reply):
            raise TypeError(f"{name} was answered with a {type(found).__name__}")
        return found
