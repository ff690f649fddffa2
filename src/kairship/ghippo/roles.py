"""Roles: the built-in ones, and those that somebody made of permissions. Functions of a connection."""

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.access import permissions, permissions_of
from kairship.access import roles as built_in
from kairship.ghippo import bindings, effective
from kairship.ghippo.database import schema
from kairship.ghippo.database.schema import roles
from kairship.ghippo.errors import Exists, Invalid, NotFound, Precondition


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
    """All of them, the built-in ones first. They are few: people make them one by one."""
    made = connection.execute(sa.select(roles.c.id).order_by(roles.c.id)).scalars()
    return [*map(_built_in, reversed(built_in.Role)), *(get(connection, identifier) for identifier in made)]


def create(
    connection: sa.Connection, identifier: str, *, display_name: str, description: str, granted: Sequence[str]
) -> None:
    _check(granted)
    if identifier in built_in.BY_ID:
        raise Exists(f"{identifier} is a built-in role; choose another name", field="id")
    values = {"id": identifier, "display_name": display_name, "description": description, "permissions": _text(granted)}
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(roles).values(values))
    except IntegrityError as error:
        raise Exists(f"there is a role {identifier} already; choose another name", field="id") from error


def update(
    connection: sa.Connection,
    identifier: str,
    *,
    display_name: str,
    description: str,
    granted: Sequence[str],
    at: int,
) -> None:
    """Everybody who has the role has the new permissions, and only these, as soon as it is delivered."""
    _check(granted)
    if get(connection, identifier).built_in:
        raise Precondition("built-in roles do not change; make a role of your own")
    values = {"display_name": display_name, "description": description, "permissions": _text(granted)}
    connection.execute(sa.update(roles).where(roles.c.id == identifier).values(values))
    effective.refresh(connection, bindings.with_role(connection, identifier), at=at)


def delete(connection: sa.Connection, identifier: str) -> None:
    if get(connection, identifier).built_in:
        raise Precondition("built-in roles cannot be deleted")
    held = bindings.with_role(connection, identifier)
    if held:
        raise Precondition(f"{len(held)} bindings give this role to somebody; take it away from them first")
    connection.execute(sa.delete(schema.roles).where(roles.c.id == identifier))


def _check(granted: Iterable[str]) -> None:
    for name in granted:
        permission = permissions().get(name)
        if permission is None or permission.role is None:
            raise Invalid(
                f"there is no permission {name[:191]!r}; list /permissions for those that there are",
                field="permissions",
            )


def _text(granted: Iterable[str]) -> str:
    return " ".join(sorted(set(granted)))


def _built_in(role: built_in.Role) -> Role:
    return Role(id=role.id, display_name=role.title, description="", permissions=permissions_of(role), built_in=True)
