"""Prevents escalation: callers grant no more than they have, by a binding, a role, a group, a password or a workspace.

The granter must hold the permissions on the same target, above it, or on the platform. With a limited access token only
the permissions of the token count. Functions of a connection.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from kairship.ghippo.database.schema import bindings, group_members, groups, users, workspaces
from kairship.ghippo.errors import PermissionDenied
from kairship.ghippo.tenancy import effective, roles
from kairship.ghippo.tenancy.bindings import PLATFORM, Target
from kairship.resources import ScopeLevel
from kairship.resources.access_binding import Scope
from kairship.rpc.calls import Caller


def check_may_grant(connection: sa.Connection, granter: Caller, granted: Iterable[str], target: Target) -> None:
    missing = sorted(set(granted) - _within_token(_held(connection, granter.id, target), granter))
    if missing:
        raise PermissionDenied(
            f"this would grant {missing[0]}, which you do not have there yourself; ask an administrator who has it"
            + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else "")
        )


def check_may_become(connection: sa.Connection, granter: Caller, *, user: str = "", group: str = "") -> None:
    """Requires all rights of a user or group: a caller who sets its password or adds members can gain them."""
    _check_may_have(connection, granter, _subject("Group", group) if group else _subjects_of(user))


def check_may_become_provider(connection: sa.Connection, granter: Caller, provider: str) -> None:
    """Requires all rights of the users and groups of an identity provider: it decides who they are."""
    its_users = sa.select(users.c.id).where(users.c.provider == provider)
    its_groups = sa.select(groups.c.id).where(groups.c.provider == provider)
    theirs = sa.select(group_members.c.group_id).where(group_members.c.user_id.in_(its_users))
    is_user, is_group = bindings.c.subject_kind == "User", bindings.c.subject_kind == "Group"
    _check_may_have(
        connection,
        granter,
        sa.or_(
            sa.and_(is_user, bindings.c.subject_id.in_(its_users)),
            sa.and_(is_group, sa.or_(bindings.c.subject_id.in_(its_groups), bindings.c.subject_id.in_(theirs))),
        ),
    )


@contextmanager
def giving_no_more(connection: sa.Connection, actor: Caller) -> Iterator[None]:
    """Refuses what is done inside if its outcome gives anybody more than the actor had before.

    Workspaces and folders give rights without a binding of their own: what comes below a bound role is reached by it.
    So the effective bindings decide that are there afterwards and were not there before.
    """
    had = effective.of_user(connection, actor.id)
    before, sequence = effective.names_in_effect(connection), effective.last_sequence(connection)
    yield
    for name, spec in effective.in_effect_after(connection, sequence):
        if name in before:
            continue
        held = {each for one in had if _encloses(one.scope, spec.scope) for each in one.permissions}
        missing = sorted(set(spec.permissions) - _within_token(held, actor))
        if missing:
            who, scope = f"{spec.subject.kind.value.lower()} {spec.subject.id}", spec.scope
            where = scope.namespace or scope.instance or scope.cluster or f"workspace {scope.workspace}"
            raise PermissionDenied(
                f"this would give {who} {missing[0]} on {where}, which you do not have there yourself; ask an"
                " administrator who has it"
            )


def _encloses(held: Scope, given: Scope) -> bool:
    """Whether a right on the first scope is one on the second too."""
    match held.level:
        case ScopeLevel.PLATFORM:
            return True
        case ScopeLevel.WORKSPACE:
            return held.workspace == given.workspace
        case ScopeLevel.INSTANCE:
            return held.instance_uid == given.instance_uid
        case ScopeLevel.CLUSTER:
            return held.cluster_uid == given.cluster_uid
        case ScopeLevel.NAMESPACE:
            return (held.instance_uid, held.namespace) == (given.instance_uid, given.namespace)


def _check_may_have(connection: sa.Connection, granter: Caller, subjects: sa.ColumnElement[bool]) -> None:
    for row in connection.execute(sa.select(bindings).where(subjects)).all():
        target = Target(kind=row.target_kind, id=row.target_id, namespace=row.namespace)
        check_may_grant(connection, granter, roles.get(connection, row.role_id).permissions, target)


def holds_on_platform(connection: sa.Connection, caller: Caller, permission: str) -> bool:
    return permission in _within_token(_held(connection, caller.id, PLATFORM), caller)


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


def _within_token(held: set[str], caller: Caller) -> set[str]:
    return held if caller.limited_to is None else held & caller.limited_to


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
    own = sa.select(group_members.c.group_id).where(group_members.c.user_id == user)
    return sa.or_(_subject("User", user), sa.and_(bindings.c.subject_kind == "Group", bindings.c.subject_id.in_(own)))


def _subject(kind: str, identifier: str) -> sa.ColumnElement[bool]:
    return sa.and_(bindings.c.subject_kind == kind, bindings.c.subject_id == identifier)
