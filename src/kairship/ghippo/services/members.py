"""Members of workspaces and folders: the bindings on them, which both services show alike."""

import sqlalchemy as sa

from kairship.gen.kairship.ghippo.v1alpha1.binding_pb import Subject
from kairship.gen.kairship.ghippo.v1alpha1.workspace_pb import WorkspaceMember
from kairship.ghippo import bindings, escalation, roles
from kairship.ghippo.errors import NotFound
from kairship.ghippo.services.bindings import give, subject_message
from kairship.rpc.calls import Caller


def members_of(connection: sa.Connection, target: bindings.Target) -> list[WorkspaceMember]:
    rows = bindings.on_target(connection, target.kind, target.id)
    return [WorkspaceMember(id=row.id, subject=subject_message(connection, row), role=row.role_id) for row in rows]


def add_member(
    connection: sa.Connection, giver: Caller, subject: Subject | None, role: str, target: bindings.Target, *, at: int
) -> WorkspaceMember:
    made = bindings.get(connection, give(connection, giver, subject, role, target, at=at))
    return WorkspaceMember(id=made.id, subject=subject_message(connection, made), role=made.role_id)


def remove_member(connection: sa.Connection, remover: Caller, target: bindings.Target, member: str, *, at: int) -> None:
    """Of this target only: the identifier of a binding elsewhere is unknown here. Nobody removes who has more."""
    row = bindings.get(connection, member)
    if (row.target_kind, row.target_id) != (target.kind, target.id):
        raise NotFound("there is no such member")
    escalation.check_may_give(connection, remover, roles.get(connection, row.role_id).permissions, target)
    bindings.delete(connection, member, at=at)
