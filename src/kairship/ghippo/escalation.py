"""Nobody gives away more than they have: not by a binding, a role, a group, or somebody else's password.

What counts is what the giver holds where it is given, or on the platform; with an access token that is for less, only
that. Functions of a connection.
"""

from collections.abc import Iterable

import sqlalchemy as sa

from kairship.ghippo import effective, roles
from kairship.ghippo.bindings import Target
from kairship.ghippo.database.schema import bindings, group_members, workspaces
from kairship.ghippo.errors import Refused
from kairship.rpc.calls import Caller


def check_may_give(connection: sa.Connection, giver: Caller, granted: Iterable[str], target: Target) -> None:
    held = _held(connection, giver.id, target)
    missing = sorted(set(granted) - (held if giver.limited_to is None else held & giver.limited_to))
    if missing:
        raise Refused(
            f"this would give {missing[0]}, which you do not have there yourself; ask somebody who has it"
            + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else "")
        )


def check_may_become(connection: sa.Connection, giver: Caller, *, user: str = "", group: str = "") -> None:
    """Whoever can set a password or put people into a group can have what that user or group has."""
    subject = _subject("Group", group) if group else _subjects_of(user)
    for row in connection.execute(sa.select(bindings).where(subject)).all():
        target = Target(kind=row.target_kind, id=row.target_id, namespace=row.namespace)
        check_may_give(connection, giver, roles.get(connection, row.role_id).permissions, target)


def _held(connection: sa.Connection, user: str, target: Target) -> set[str]:
    places = [bindings.c.target_kind == "Platform"]
    places += [
        sa.and_(bindings.c.target_kind == kind, bindings.c.target_id == identifier)
        for kind, identifier in _above(connection, target)
    ]
    if target.kind == "Resource":
        same = sa.and_(bindings.c.target_kind == "Resource", bindings.c.target_id == target.id)
        places.append(sa.and_(same, bindings.c.namespace.in_({"", target.namespace})))
    query = sa.select(bindings.c.role_id).where(_subjects_of(user), sa.or_(*places)).distinct()
    found = connection.execute(query).scalars().all()
    return {permission for role in found for permission in roles.get(connection, role).permissions}


def _above(connection: sa.Connection, target: Target) -> set[tuple[str, str]]:
    """The workspace or folder that a target is, and the folders above it."""
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
