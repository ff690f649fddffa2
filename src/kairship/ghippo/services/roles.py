"""The service Roles: built-in and custom roles, and the catalogue of permissions."""

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.access import permissions
from kairship.gen.kairship.ghippo.v1alpha1.role_pb import (
    CreateRoleRequest,
    DeleteRoleRequest,
    GetRoleRequest,
    ListPermissionsRequest,
    ListPermissionsResponse,
    ListRolesRequest,
    ListRolesResponse,
    Permission,
    Role,
    UpdateRoleRequest,
)
from kairship.ghippo.database import Database
from kairship.ghippo.errors import NotFound
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.listing import Page, pagination
from kairship.ghippo.tenancy import bindings, escalation, roles
from kairship.rpc.calls import Call


def _message(role: roles.Role) -> Role:
    return Role(
        id=role.id,
        display_name=role.display_name,
        description=role.description,
        permissions=sorted(role.permissions),
        built_in=role.built_in,
    )


def _sees_custom_roles(connection: sa.Connection, call: Call) -> bool:
    """The built-in roles are in the documentation. Custom roles are shown to users who have a role themselves."""
    return escalation.holds_anywhere(connection, call.caller, "ghippo.roles.get")


def _visible(connection: sa.Connection, call: Call) -> list[roles.Role]:
    sees_custom = _sees_custom_roles(connection, call)
    return [role for role in roles.find(connection) if role.built_in or sees_custom]


class Roles:
    def __init__(self, database: Database, *, clock: Now = now) -> None:
        self._database = database
        self._now = clock

    async def list_roles(self, request: ListRolesRequest, call: Call) -> ListRolesResponse:
        page = Page.of(request)
        found = [
            role
            for role in await self._database.read(lambda connection: _visible(connection, call))
            if page.search.lower() in role.id or page.search.lower() in role.display_name.lower()
        ]
        begin = (page.position - 1) * page.limit
        items = [_message(role) for role in found[begin : begin + page.limit]]
        return ListRolesResponse(items=items, pagination=pagination(page, len(found)))

    async def create_role(self, request: CreateRoleRequest, call: Call) -> Role:
        def work(connection: sa.Connection) -> Role:
            roles.create(
                connection,
                request.id,
                display_name=request.display_name,
                description=request.description,
                granted=request.permissions,
            )
            return _message(roles.get(connection, request.id))

        return await self._database.write(work)

    async def get_role(self, request: GetRoleRequest, call: Call) -> Role:
        def work(connection: sa.Connection) -> Role:
            found = roles.get(connection, request.id)
            if not found.built_in and not _sees_custom_roles(connection, call):
                raise NotFound(f"there is no role {request.id}")
            return _message(found)

        return await self._database.read(work)

    async def update_role(self, request: UpdateRoleRequest, call: Call) -> Role:
        def work(connection: sa.Connection) -> Role:
            # It may be the caller's own role: the caller must already have the permissions that are added.
            gained = set(request.permissions) - roles.get(connection, request.id).permissions
            escalation.check_may_grant(connection, call.caller, gained, bindings.PLATFORM)
            roles.update(
                connection,
                request.id,
                display_name=request.display_name,
                description=request.description,
                granted=request.permissions,
                at=self._now(),
            )
            return _message(roles.get(connection, request.id))

        return await self._database.write(work)

    async def delete_role(self, request: DeleteRoleRequest, call: Call) -> Empty:
        await self._database.write(lambda connection: roles.delete(connection, request.id))
        return Empty()

    async def list_permissions(self, request: ListPermissionsRequest, call: Call) -> ListPermissionsResponse:
        return ListPermissionsResponse(
            items=[
                Permission(name=each.name, description=f"Can {each.about}.", role=each.role.id)
                for each in permissions().values()
                if each.role is not None and request.product in {"", each.product}
            ]
        )
