"""Prevents escalation: callers grant no more than they have, by a binding, a role, a group or a password.

The granter must hold the permissions on the same target, above it, or on the platform. With a limited access token only
the permissions of the token count. Functions of a connection.
"""

from collections.abc import Iterable

import sqlalchemy as sa

from kairship.ghippo.database.schema import bindings, group_members, workspaces
from kairship.ghippo.errors import PermissionDenied
from kairship.ghippo.tenancy import effective, roles
from kairship.ghippo.tenancy.bindings import Target
from kairship.rpc.calls import Caller


def check_may_grant(connection: sa.Connection, granter: Caller, granted: Iterable[str], target: Target) -> None:
    held = _held(connection, granter.id, target)
    missing = sorted(set(granted) - (held if granter.limited_to is None else held & granter.limited_to))
    if missing:
        raise PermissionDenied(
            f"this would grant {missing[0]}, which you do not have there yourself; ask an administrator who has it"
            + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else "")
        )


def check_may_become(connection: sa.Connection, granter: Caller, *, user: str = "", group: str = "") -> None:
    """Requires all rights of a user or group: a caller who sets its password or adds members can gain them."""
    subject = _subject("Group", group) if group else _subjects_of(user)
    for row in connection.execute(sa.select(bindings).where(subject)).all():
        target = Target(kind=row.target_kind, id=row.target_id, namespace=row.namespace)
        check_may_grant(connection, granter, roles.get(connection, row.role_id).permissions, target)


def holds_anywhere(connection: sa.Connection, caller: Caller, permission: str) -> bool:
    """Whether the caller has the permission on anything at all."""
    if caller.limited_to is not None and permission not in caller.limited_to:
        return False
    found = connection.execute(sa.select(bindings.c.role_id).where(_subjects_of(caller.id)).distinct()).scalars().all()
    return any(permission in roles.get(connection, role).permissions for role in found)


def _held(connection: sa.Connection, user: str, target: Target) -> set[str]:
    targets = [bindings.c.target_kind == "Platform"]
    targets += [
        sa.and_(bindings.c.target_kind == kind, bindings.c.target_id == identifier)
        for kind, identifier in _enclosing_targets(connection, target)
    ]
    if target.kind == "Resource":
        same = sa.and_(bindings.c.target_kind == "Resource", bindings.c.target_id == target.id)
        targets.append(sa.and_(same, bindings.c.namespace.in_({"", target.namespace})))
    query = sa.select(bindings.c.role_id).where(_subjects_of(user), sa.or_(*targets)).distinct()
    found = connection.execute(query).scalars().all()
    return {permission for role in found for permission in roles.get(connection, role).permissions}


def _enclosing_targets(connection: sa.Connection, target: Target) -> set[tuple[str, str]]:
    """The workspace or folder of a target, and the folders above it."""
    match target.kind:
        case "Folder":
            return {("Folder", str(each)) for each in effective.ancestors(connection, int(target.id))}
        case "Workspace":
            identifier = int(target.id)
            folder = connection.execute(sa.select(workspaces.c.folder_id).where(workspaces.c.id == identifier)).scalar()
            above = {("Folder", str(each)) for each in effective.ancestors(connection, folder)}
            return {("Workspace", target.id), *above}
        case _:
            return set()


def _subjects_of(user: str) -> sa.ColumnElement[bool]:
    groups = sa.select(group_members.c.group_id).where(group_members.c.user_id == user)
    return sa.or_(
        _subject("User", user), sa.and_(bindings.c.subject_kind == "Group", bindings.c.subject_id.in_(groups))
    )


def _subject(kind: str, identifier: str) -> sa.ColumnElement[bool]:
    return sa.and_(bindings.c.subject_kind == kind, bindings.c.subject_id == identifier)
