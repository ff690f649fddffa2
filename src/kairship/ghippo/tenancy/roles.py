"""The built-in roles and the custom ones. Functions of a connection."""

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.access import permissions, permissions_of
from kairship.access.catalogue import roles as built_in
from kairship.ghippo.database import schema
from kairship.ghippo.database.schema import roles
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from kairship.ghippo.tenancy import bindings, effective


class Role(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    display_name: str
    description: str
    permissions: frozenset[str]
    built_in: bool = False


def get(connection: sa.Connection, identifier: str) -> Role:
    if identifier in built_in.BY_ID:
        return _built_in(built_in.BY_ID[identifier])
    row = connection.execute(sa.select(roles).where(roles.c.id == identifier)).first()
    if row is None:
        raise NotFound(f"there is no role {identifier}")
    return Role(
        id=row.id,
        display_name=row.display_name,
        description=row.description,
        permissions=frozenset(row.permissions.split()),
    )


def find(connection: sa.Connection) -> list[Role]:
    """All roles, the built-in ones first. Custom roles are few: users create them one by one."""
    custom = connection.execute(sa.select(roles.c.id).order_by(roles.c.id)).scalars()
    return [*map(_built_in, reversed(built_in.Role)), *(get(connection, identifier) for identifier in custom)]


def create(
    connection: sa.Connection, identifier: str, *, display_name: str, description: str, granted: Sequence[str]
) -> None:
    _check(granted)
    if identifier in built_in.BY_ID:
        raise AlreadyExists(f"{identifier} is a built-in role; choose another name", field="id")
    values = {"id": identifier, "display_name": display_name, "description": description, "permissions": _text(granted)}
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(roles).values(values))
    except IntegrityError as error:
        raise AlreadyExists(f"there is a role {identifier} already; choose another name", field="id") from error


def update(
    connection: sa.Connection,
    identifier: str,
    *,
    display_name: str,
    description: str,
    granted: Sequence[str],
    at: int,
) -> None:
    """Changes a role. Its holders have the new permissions, and only these, as soon as they are delivered."""
    _check(granted)
    if get(connection, identifier).built_in:
        raise FailedPrecondition("built-in roles do not change; create a custom role instead")
    values = {"display_name": display_name, "description": description, "permissions": _text(granted)}
    connection.execute(sa.update(roles).where(roles.c.id == identifier).values(values))
    effective.refresh(connection, bindings.with_role(connection, identifier), at=at)


def delete(connection: sa.Connection, identifier: str) -> None:
    if get(connection, identifier).built_in:
        raise FailedPrecondition("built-in roles cannot be deleted")
    held = bindings.with_role(connection, identifier)
    if held:
        raise FailedPrecondition(f"{len(held)} bindings have this role; delete them first")
    connection.execute(sa.delete(schema.roles).where(roles.c.id == identifier))


def _check(granted: Iterable[str]) -> None:
    for name in granted:
        permission = permissions().get(name)
        if permission is None or permission.role is None:
            raise InvalidArgument(
                f"there is no permission {name[:191]!r}; list /permissions to see which there are",
                field="permissions",
            )


def _text(granted: Iterable[str]) -> str:
    return " ".join(sorted(set(granted)))


def _built_in(role: built_in.Role) -> Role:
    return Role(id=role.id, display_name=role.title, description="", permissions=permissions_of(role), built_in=True)
