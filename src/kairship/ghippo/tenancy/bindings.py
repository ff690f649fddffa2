"""Bindings as users create them: a role for a user or a group on a target. Functions of a connection.

`effective` resolves them into the bindings that the authoriser and the instances get.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import sqlalchemy as sa

from kairship.access import Role
from kairship.access.catalogue import roles as built_in
from kairship.ghippo.database.schema import (
    bindings,
    folders,
    group_members,
    groups,
    is_active_user,
    resources,
    roles,
    users,
    workspaces,
)
from kairship.ghippo.errors import FailedPrecondition, InvalidArgument, NotFound
from kairship.ghippo.identifiers import new_id
from kairship.ghippo.listing import Page, select_page
from kairship.ghippo.tenancy import effective

SubjectKind: TypeAlias = Literal["User", "Group"]
TargetKind: TypeAlias = Literal["Platform", "Folder", "Workspace", "Resource"]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The object that a role is bound on: `id` is the number of a folder or workspace, or the UID of an instance."""

    kind: TargetKind
    id: str = ""
    namespace: str = ""


PLATFORM = Target(kind="Platform")


def target_of_instance(connection: sa.Connection, instance: str, namespace: str = "") -> Target:
    uid = connection.execute(sa.select(resources.c.uid).where(resources.c.name == instance)).scalar()
    if uid is None:
        raise NotFound(f"there is no registered instance {instance}")
    return Target(kind="Resource", id=uid, namespace=namespace)


def create(
    connection: sa.Connection, *, subject_kind: SubjectKind, subject_id: str, role: str, target: Target, at: int
) -> str:
    """Binds a role. Binding it again changes nothing and returns the identifier of the first binding."""
    _check_subject(connection, subject_kind, subject_id)
    _check_role(connection, role, target)
    _check_target(connection, target)
    same = {
        "subject_kind": subject_kind,
        "subject_id": subject_id,
        "role_id": role,
        "target_kind": target.kind,
        "target_id": target.id,
        "namespace": target.namespace,
    }
    found = connection.execute(
        sa.select(bindings.c.id).where(*(bindings.c[name] == value for name, value in same.items()))
    ).scalar()
    if found is not None:
        return str(found)
    identifier = new_id("b")
    connection.execute(sa.insert(bindings).values(id=identifier, created_at=at, **same))
    effective.refresh(connection, [identifier], at=at)
    return identifier


def get(connection: sa.Connection, identifier: str) -> sa.Row[Any]:
    row = connection.execute(sa.select(bindings).where(bindings.c.id == identifier)).first()
    if row is None:
        raise NotFound("there is no such binding")
    return row


def find(connection: sa.Connection, page: Page, *, subject: str = "") -> tuple[Sequence[sa.Row[Any]], int]:
    query = sa.select(bindings).order_by(bindings.c.created_at.desc(), bindings.c.id)
    if subject:
        query = query.where(bindings.c.subject_id == subject)
    return select_page(connection, query, page, names=[bindings.c.subject_id, bindings.c.role_id])


def on_target(connection: sa.Connection, kind: TargetKind, identifier: str) -> Sequence[sa.Row[Any]]:
    query = sa.select(bindings).where(bindings.c.target_kind == kind, bindings.c.target_id == identifier)
    return connection.execute(query.order_by(bindings.c.created_at, bindings.c.id)).all()


def with_role(connection: sa.Connection, role: str) -> list[str]:
    return list(connection.execute(sa.select(bindings.c.id).where(bindings.c.role_id == role)).scalars())


def delete(connection: sa.Connection, identifier: str, *, at: int) -> None:
    """Removes a binding, unless no Platform Admin would be left."""
    get(connection, identifier)
    if would_lose_admins(connection, without_binding=identifier):
        raise FailedPrecondition(
            "without this binding the platform would have no administrator; make another user Platform Admin first"
        )
    _remove(connection, [identifier], at=at)


def remove_of_subject(connection: sa.Connection, kind: SubjectKind, subject: str, *, at: int) -> None:
    query = sa.select(bindings.c.id).where(bindings.c.subject_kind == kind, bindings.c.subject_id == subject)
    _remove(connection, list(connection.execute(query).scalars()), at=at)


def remove_on_target(connection: sa.Connection, kind: TargetKind, identifier: str, *, at: int) -> None:
    _remove(connection, [row.id for row in on_target(connection, kind, identifier)], at=at)


def would_lose_admins(
    connection: sa.Connection,
    *,
    without_user: str = "",
    without_group: str = "",
    without_binding: str = "",
    in_group: str = "",
) -> bool:
    """Whether removing these would leave no Platform Admin who can sign in, while there is one now.

    With `in_group` the user stays, and only leaves that group.
    """
    admin = (
        sa.select(bindings.c.subject_kind, bindings.c.subject_id)
        .where(bindings.c.role_id == Role.PLATFORM_ADMIN.id, bindings.c.target_kind == "Platform")
        .subquery()
    )

    def any_admin(*, now: bool) -> bool:
        bound = admin if now else (
            sa.select(bindings.c.subject_kind, bindings.c.subject_id)
            .where(
                bindings.c.role_id == Role.PLATFORM_ADMIN.id,
                bindings.c.target_kind == "Platform",
                bindings.c.id != without_binding,
            )
            .subquery()
        )  # fmt: skip
        direct = sa.select(users.c.id).join(
            bound, sa.and_(bound.c.subject_kind == "User", bound.c.subject_id == users.c.id)
        )
        by_group = (
            sa.select(users.c.id)
            .join(group_members, group_members.c.user_id == users.c.id)
            .join(bound, sa.and_(bound.c.subject_kind == "Group", bound.c.subject_id == group_members.c.group_id))
        )
        if not now:
            by_group = by_group.where(group_members.c.group_id != without_group)
            if in_group:
                by_group = by_group.where(
                    sa.not_(sa.and_(group_members.c.group_id == in_group, users.c.id == without_user))
                )
            else:
                direct = direct.where(users.c.id != without_user)
                by_group = by_group.where(users.c.id != without_user)
        query = sa.union_all(direct.where(is_active_user), by_group.where(is_active_user)).limit(1)
        return connection.execute(query).first() is not None

    return any_admin(now=True) and not any_admin(now=False)


def has_admin(connection: sa.Connection) -> bool:
    """Whether there is a Platform Admin who can sign in."""
    groups_of_user = sa.select(group_members.c.group_id).where(group_members.c.user_id == users.c.id)
    own = sa.and_(bindings.c.subject_kind == "User", bindings.c.subject_id == users.c.id)
    by_group = sa.and_(bindings.c.subject_kind == "Group", bindings.c.subject_id.in_(groups_of_user))
    admin = sa.and_(bindings.c.role_id == Role.PLATFORM_ADMIN.id, bindings.c.target_kind == "Platform")
    query = sa.select(users.c.id).select_from(users).join(bindings, sa.or_(own, by_group)).where(admin, is_active_user)
    return connection.execute(query.limit(1)).first() is not None


def _remove(connection: sa.Connection, identifiers: list[str], *, at: int) -> None:
    connection.execute(sa.delete(bindings).where(bindings.c.id.in_(identifiers)))
    effective.refresh(connection, identifiers, at=at)


def _check_subject(connection: sa.Connection, kind: SubjectKind, identifier: str) -> None:
    table = users if kind == "User" else groups
    if connection.execute(sa.select(table.c.id).where(table.c.id == identifier)).first() is None:
        raise NotFound(f"there is no {kind.lower()} {identifier}")


def _check_role(connection: sa.Connection, role: str, target: Target) -> None:
    if role == Role.PLATFORM_ADMIN.id and target.kind != "Platform":
        raise InvalidArgument("Platform Admin can only be bound on the platform; bind Admin here", field="role")
    known = role in built_in.BY_ID or connection.execute(sa.select(roles.c.id).where(roles.c.id == role)).first()
    if not known:
        raise NotFound(f"there is no role {role}")


def _check_target(connection: sa.Connection, target: Target) -> None:
    match target.kind:
        case "Platform":
            if target.id or target.namespace:
                raise InvalidArgument("the platform has no identifier and no namespace; leave both out", field="target")
            return
        case "Folder":
            column: Any = folders.c.id
        case "Workspace":
            column = workspaces.c.id
        case "Resource":
            column = resources.c.uid
    value = target.id if target.kind == "Resource" else _number(target.id)
    if connection.execute(sa.select(column).where(column == value)).first() is None:
        raise NotFound(f"there is no {target.kind.lower()} {target.id}")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InvalidArgument("a folder or workspace is identified by its number", field="target.id")
    return int(text)
