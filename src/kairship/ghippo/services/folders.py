"""The service Folders: the tree of folders and the members of each."""

from typing import Any, Protocol

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.folder_pb import (
    AddFolderMemberRequest,
    CreateFolderRequest,
    DeleteFolderRequest,
    Folder,
    GetFolderRequest,
    ListFolderMembersRequest,
    ListFolderMembersResponse,
    ListFoldersRequest,
    ListFoldersResponse,
    RemoveFolderMemberRequest,
    UpdateFolderRequest,
)
from kairship.gen.kairship.ghippo.v1alpha1.workspace_pb import WorkspaceMember
from kairship.ghippo.database import Database
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.listing import Page, pagination
from kairship.ghippo.services.calls import number, optional_number
from kairship.ghippo.services.tenant_members import add_member, members_of, remove_member
from kairship.ghippo.tenancy import bindings, escalation, folders
from kairship.rpc.calls import Call


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


def _id(request: _Identified) -> int:
    return number(request.id, "id")


def _target(request: _Identified) -> bindings.Target:
    return bindings.Target(kind="Folder", id=str(_id(request)))


def _message(row: sa.Row[Any]) -> Folder:
    return Folder(id=str(row.id), name=row.name, parent="" if row.parent_id is None else str(row.parent_id))


class Folders:
    def __init__(self, database: Database, *, clock: Now = now) -> None:
        self._database = database
        self._now = clock

    async def list_folders(self, request: ListFoldersRequest, call: Call) -> ListFoldersResponse:
        page = Page.of(request)
        rows, total = await self._database.read(lambda connection: folders.find(connection, page))
        return ListFoldersResponse(items=[_message(row) for row in rows], pagination=pagination(page, total))

    async def create_folder(self, request: CreateFolderRequest, call: Call) -> Folder:
        parent = optional_number(request.parent, "parent")

        def work(connection: sa.Connection) -> Folder:
            made = folders.create(connection, name=request.name, parent=parent)
            return _message(folders.get(connection, made))

        return await self._database.write(work)

    async def get_folder(self, request: GetFolderRequest, call: Call) -> Folder:
        return _message(await self._database.read(lambda connection: folders.get(connection, _id(request))))

    async def update_folder(self, request: UpdateFolderRequest, call: Call) -> Folder:
        parent = optional_number(request.parent, "parent")

        def work(connection: sa.Connection) -> Folder:
            with escalation.giving_no_more(connection, call.caller):
                folders.update(connection, _id(request), name=request.name, parent=parent, at=self._now())
            return _message(folders.get(connection, _id(request)))

        return await self._database.write(work)

    async def delete_folder(self, request: DeleteFolderRequest, call: Call) -> Empty:
        await self._database.write(lambda connection: folders.delete(connection, _id(request), at=self._now()))
        return Empty()

    async def list_folder_members(self, request: ListFolderMembersRequest, call: Call) -> ListFolderMembersResponse:
        def work(connection: sa.Connection) -> ListFolderMembersResponse:
            folders.get(connection, _id(request))
            return ListFolderMembersResponse(items=members_of(connection, _target(request)))

        return await self._database.read(work)

    async def add_folder_member(self, request: AddFolderMemberRequest, call: Call) -> WorkspaceMember:
        def work(connection: sa.Connection) -> WorkspaceMember:
            target = _target(request)
            return add_member(connection, call.caller, request.subject, request.role, target, at=self._now())

        return await self._database.write(work)

    async def remove_folder_member(self, request: RemoveFolderMemberRequest, call: Call) -> Empty:
        await self._database.write(
            lambda connection: remove_member(connection, call.caller, _target(request), request.member, at=self._now())
        )
        return Empty()
