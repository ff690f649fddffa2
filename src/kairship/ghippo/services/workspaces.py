"""The service Workspaces: workspaces, their members and the resources that they hold."""

from typing import Any, Protocol

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.workspace_pb import (
    AddWorkspaceMemberRequest,
    AddWorkspaceResourceRequest,
    CreateWorkspaceRequest,
    DeleteWorkspaceRequest,
    GetWorkspaceRequest,
    ListWorkspaceMembersRequest,
    ListWorkspaceMembersResponse,
    ListWorkspaceResourcesRequest,
    ListWorkspaceResourcesResponse,
    ListWorkspacesRequest,
    ListWorkspacesResponse,
    MoveWorkspaceRequest,
    RemoveWorkspaceMemberRequest,
    RemoveWorkspaceResourceRequest,
    UpdateWorkspaceRequest,
    Workspace,
    WorkspaceMember,
    WorkspaceResource,
)
from kairship.ghippo.database import Database
from kairship.ghippo.errors import InvalidArgument
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.listing import Page, pagination
from kairship.ghippo.services.calls import number, optional_number
from kairship.ghippo.services.tenant_members import add_member, members_of, remove_member
from kairship.ghippo.tenancy import bindings, effective, escalation, workspaces
from kairship.rpc.calls import Call


class _Identified(Protocol):
    @property
    def workspace(self) -> str: ...


def _id(request: _Identified) -> int:
    return number(request.workspace, "workspace")


def _target(request: _Identified) -> bindings.Target:
    return bindings.Target(kind="Workspace", id=str(_id(request)))


def _message(row: sa.Row[Any]) -> Workspace:
    folder = "" if row.folder_id is None else str(row.folder_id)
    return Workspace(id=str(row.id), name=row.name, alias=row.alias, folder=folder, created_at=row.created_at)


class Workspaces:
    def __init__(self, database: Database, *, clock: Now = now) -> None:
        self._database = database
        self._now = clock

    async def list_workspaces(self, request: ListWorkspacesRequest, call: Call) -> ListWorkspacesResponse:
        page = Page.of(request)

        def work(connection: sa.Connection) -> ListWorkspacesResponse:
            only = effective.visible_workspaces(connection, call.caller.id)
            rows, total = workspaces.find(connection, page, only=only)
            return ListWorkspacesResponse(items=[_message(row) for row in rows], pagination=pagination(page, total))

        return await self._database.read(work)

    async def create_workspace(self, request: CreateWorkspaceRequest, call: Call) -> Workspace:
        folder = optional_number(request.folder, "folder")

        def work(connection: sa.Connection) -> Workspace:
            made = workspaces.create(connection, name=request.name, alias=request.alias, folder=folder, at=self._now())
            return _message(workspaces.get(connection, made))

        return await self._database.write(work)

    async def get_workspace(self, request: GetWorkspaceRequest, call: Call) -> Workspace:
        return _message(await self._database.read(lambda connection: workspaces.get(connection, _id(request))))

    async def update_workspace(self, request: UpdateWorkspaceRequest, call: Call) -> Workspace:
        def work(connection: sa.Connection) -> Workspace:
            workspaces.update(connection, _id(request), alias=request.alias)
            return _message(workspaces.get(connection, _id(request)))

        return await self._database.write(work)

    async def move_workspace(self, request: MoveWorkspaceRequest, call: Call) -> Workspace:
        folder = optional_number(request.folder, "folder")

        def work(connection: sa.Connection) -> Workspace:
            with escalation.giving_no_more(connection, call.caller):
                workspaces.move(connection, _id(request), folder=folder, at=self._now())
            return _message(workspaces.get(connection, _id(request)))

        return await self._database.write(work)

    async def delete_workspace(self, request: DeleteWorkspaceRequest, call: Call) -> Empty:
        await self._database.write(lambda connection: workspaces.delete(connection, _id(request), at=self._now()))
        return Empty()

    async def list_workspace_members(
        self, request: ListWorkspaceMembersRequest, call: Call
    ) -> ListWorkspaceMembersResponse:
        def work(connection: sa.Connection) -> ListWorkspaceMembersResponse:
            workspaces.get(connection, _id(request))
            return ListWorkspaceMembersResponse(items=members_of(connection, _target(request)))

        return await self._database.read(work)

    async def add_workspace_member(self, request: AddWorkspaceMemberRequest, call: Call) -> WorkspaceMember:
        def work(connection: sa.Connection) -> WorkspaceMember:
            target = _target(request)
            return add_member(connection, call.caller, request.subject, request.role, target, at=self._now())

        return await self._database.write(work)

    async def remove_workspace_member(self, request: RemoveWorkspaceMemberRequest, call: Call) -> Empty:
        await self._database.write(
            lambda connection: remove_member(connection, call.caller, _target(request), request.id, at=self._now())
        )
        return Empty()

    async def list_workspace_resources(
        self, request: ListWorkspaceResourcesRequest, call: Call
    ) -> ListWorkspaceResourcesResponse:
        def work(connection: sa.Connection) -> ListWorkspaceResourcesResponse:
            workspaces.get(connection, _id(request))
            rows, clusters = (
                workspaces.held(connection, _id(request)),
                workspaces.held_clusters(connection, _id(request)),
            )
            items = [WorkspaceResource(id=row.id, instance=row.instance, namespace=row.namespace) for row in rows]
            items += [WorkspaceResource(id=row.id, cluster=row.cluster) for row in clusters]
            return ListWorkspaceResourcesResponse(items=items)

        return await self._database.read(work)

    async def add_workspace_resource(self, request: AddWorkspaceResourceRequest, call: Call) -> WorkspaceResource:
        instance, namespace, cluster = request.instance, request.namespace, request.cluster
        if bool(instance) == bool(cluster):
            raise InvalidArgument("name either an instance or a cluster", field="cluster" if cluster else "instance")
        if cluster and namespace:
            raise InvalidArgument("a workspace holds a cluster as a whole: leave the namespace out", field="namespace")

        def work(connection: sa.Connection) -> str:
            with escalation.giving_no_more(connection, call.caller):
                if cluster:
                    return workspaces.add_cluster(connection, _id(request), cluster=cluster, at=self._now())
                return workspaces.add(connection, _id(request), instance=instance, namespace=namespace, at=self._now())

        made = await self._database.write(work)
        return WorkspaceResource(id=made, instance=instance, namespace=namespace, cluster=cluster)

    async def remove_workspace_resource(self, request: RemoveWorkspaceResourceRequest, call: Call) -> Empty:
        await self._database.write(
            lambda connection: workspaces.remove(connection, _id(request), request.id, at=self._now())
        )
        return Empty()
