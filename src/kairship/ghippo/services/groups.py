"""The service Groups: groups and their members."""

from typing import Any

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.group_pb import (
    AddGroupMemberRequest,
    CreateGroupRequest,
    DeleteGroupRequest,
    GetGroupRequest,
    Group,
    GroupMember,
    ListGroupMembersRequest,
    ListGroupMembersResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    RemoveGroupMemberRequest,
    UpdateGroupRequest,
)
from kairship.ghippo.database import Database
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.identity import groups
from kairship.ghippo.listing import Page, pagination
from kairship.ghippo.tenancy import escalation
from kairship.rpc.calls import Call


def _message(row: sa.Row[Any]) -> Group:
    return Group(
        id=row.id,
        name=row.name,
        description=row.description,
        provider=row.provider,
        size=row.size,
        created_at=row.created_at,
    )


class Groups:
    def __init__(self, database: Database, *, clock: Now = now) -> None:
        self._database = database
        self._now = clock

    async def list_groups(self, request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
        page = Page.of(request)
        rows, total = await self._database.read(lambda connection: groups.find(connection, page))
        return ListGroupsResponse(items=[_message(row) for row in rows], pagination=pagination(page, total))

    async def create_group(self, request: CreateGroupRequest, call: Call) -> Group:
        def work(connection: sa.Connection) -> Group:
            made = groups.create(connection, name=request.name, description=request.description, at=self._now())
            return _message(groups.get(connection, made))

        return await self._database.write(work)

    async def get_group(self, request: GetGroupRequest, call: Call) -> Group:
        return _message(await self._database.read(lambda connection: groups.get(connection, request.id)))

    async def update_group(self, request: UpdateGroupRequest, call: Call) -> Group:
        def work(connection: sa.Connection) -> Group:
            groups.update(connection, request.id, description=request.description)
            return _message(groups.get(connection, request.id))

        return await self._database.write(work)

    async def delete_group(self, request: DeleteGroupRequest, call: Call) -> Empty:
        await self._database.write(lambda connection: groups.delete(connection, request.id, at=self._now()))
        return Empty()

    async def list_group_members(self, request: ListGroupMembersRequest, call: Call) -> ListGroupMembersResponse:
        page = Page.of(request)
        rows, total = await self._database.read(lambda connection: groups.members(connection, request.id, page))
        items = [GroupMember(user=row.id, name=row.name, display_name=row.display_name) for row in rows]
        return ListGroupMembersResponse(items=items, pagination=pagination(page, total))

    async def add_group_member(self, request: AddGroupMemberRequest, call: Call) -> Empty:
        def work(connection: sa.Connection) -> None:
            escalation.check_may_become(connection, call.caller, group=request.id)
            groups.add_member(connection, request.id, request.user, at=self._now())

        await self._database.write(work)
        return Empty()

    async def remove_group_member(self, request: RemoveGroupMemberRequest, call: Call) -> Empty:
        await self._database.write(
            lambda connection: groups.remove_member(connection, request.id, request.user, at=self._now())
        )
        return Empty()
