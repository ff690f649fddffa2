"""The members of workspaces and folders, which are the bindings on them. Both services use this module."""

import sqlalchemy as sa

from kairship.gen.kairship.ghippo.v1alpha1.binding_pb import Subject
from kairship.gen.kairship.ghippo.v1alpha1.workspace_pb import WorkspaceMember
from kairship.ghippo.errors import NotFound
from kairship.ghippo.services.bindings import grant_role, subject_message
from kairship.ghippo.tenancy import bindings, escalation, roles
from kairship.rpc.calls import Caller


def members_of(connection: sa.Connection, target: bindings.Target) -> list[WorkspaceMember]:
    rows = bindings.on_target(connection, target.kind, target.id)
    return [WorkspaceMember(id=row.id, subject=subject_message(connection, row), role=row.role_id) for row in rows]


def add_member(
    connection: sa.Connection, granter: Caller, subject: Subject | None, role: str, target: bindings.Target, *, at: int
) -> WorkspaceMember:
    made = bindings.get(connection, grant_role(connection, granter, subject, role, target, at=at))
    return WorkspaceMember(id=made.id, subject=subject_message(connection, made), role=made.role_id)


def remove_member(connection: sa.Connection, remover: Caller, target: bindings.Target, member: str, *, at: int) -> None:
    """Removes a member of this target; bindings on others are not found. The remover must have the member's rights."""
    row = bindings.get(connection, member)
    if (row.target_kind, row.target_id) != (target.kind, target.id):
        raise NotFound("there is no such member")
    escalation.check_may_grant(connection, remover, roles.get(connection, row.role_id).permissions, target)
    bindings.delete(connection, member, at=at)
