"""The service Bindings, and the messages of subjects and targets."""

from typing import Any

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.binding_pb import (
    Binding,
    CreateBindingRequest,
    DeleteBindingRequest,
    ListBindingsRequest,
    ListBindingsResponse,
    Subject,
    Target,
)
from kairship.ghippo.database import Database
from kairship.ghippo.database.schema import groups, resources, users
from kairship.ghippo.delivery import rejections
from kairship.ghippo.errors import InvalidArgument
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.listing import Page, pagination
from kairship.ghippo.tenancy import bindings, escalation, roles
from kairship.rpc.calls import Call, Caller

_SUBJECTS: dict[Subject.Kind, bindings.SubjectKind] = {Subject.Kind.USER: "User", Subject.Kind.GROUP: "Group"}
_TARGETS: dict[Target.Kind, bindings.TargetKind] = {
    Target.Kind.PLATFORM: "Platform",
    Target.Kind.FOLDER: "Folder",
    Target.Kind.WORKSPACE: "Workspace",
    Target.Kind.RESOURCE: "Resource",
}


def subject_of(message: Subject | None) -> tuple[bindings.SubjectKind, str]:
    if message is None or message.kind not in _SUBJECTS:
        raise InvalidArgument("subject.kind must be USER or GROUP", field="subject.kind")
    return _SUBJECTS[message.kind], message.id


def subject_message(connection: sa.Connection, row: sa.Row[Any]) -> Subject:
    table = users if row.subject_kind == "User" else groups
    name = connection.execute(sa.select(table.c.name).where(table.c.id == row.subject_id)).scalar()
    [kind] = [kind for kind, word in _SUBJECTS.items() if word == row.subject_kind]
    return Subject(kind=kind, id=row.subject_id, name=name or "")


def grant_role(
    connection: sa.Connection, granter: Caller, subject: Subject | None, role: str, target: bindings.Target, *, at: int
) -> str:
    """Binds a role, if the granter has all of its permissions on the target."""
    kind, identifier = subject_of(subject)
    escalation.check_may_grant(connection, granter, roles.get(connection, role).permissions, target)
    return bindings.create(connection, subject_kind=kind, subject_id=identifier, role=role, target=target, at=at)


def _target_of(connection: sa.Connection, message: Target | None) -> bindings.Target:
    if message is None or message.kind not in _TARGETS:
        raise InvalidArgument("target.kind must be PLATFORM, FOLDER, WORKSPACE or RESOURCE", field="target.kind")
    kind = _TARGETS[message.kind]
    if kind == "Resource":
        if message.id or not message.instance:
            raise InvalidArgument(
                "a target of kind RESOURCE is named by its instance, not by an id", field="target.instance"
            )
        return bindings.target_of_instance(connection, message.instance, message.namespace)
    if message.instance or message.namespace:
        raise InvalidArgument("only a target of kind RESOURCE has an instance and a namespace", field="target")
    return bindings.Target(kind=kind, id=message.id)


def _message(connection: sa.Connection, row: sa.Row[Any]) -> Binding:
    [kind] = [kind for kind, word in _TARGETS.items() if word == row.target_kind]
    target = Target(kind=kind, id=row.target_id)
    if row.target_kind == "Resource":
        name = connection.execute(sa.select(resources.c.name).where(resources.c.uid == row.target_id)).scalar()
        target = Target(kind=kind, instance=name or "", namespace=row.namespace)
    return Binding(
        id=row.id,
        subject=subject_message(connection, row),
        role=row.role_id,
        target=target,
        created_at=row.created_at,
        problem=rejections.problem_of(connection, row.id),
    )


class Bindings:
    def __init__(self, database: Database, *, clock: Now = now) -> None:
        self._database = database
        self._now = clock

    async def list_bindings(self, request: ListBindingsRequest, call: Call) -> ListBindingsResponse:
        page = Page.of(request)

        def work(connection: sa.Connection) -> ListBindingsResponse:
            rows, total = bindings.find(connection, page, subject=request.subject)
            items = [_message(connection, row) for row in rows]
            return ListBindingsResponse(items=items, pagination=pagination(page, total))

        return await self._database.read(work)

    async def create_binding(self, request: CreateBindingRequest, call: Call) -> Binding:
        def work(connection: sa.Connection) -> Binding:
            target = _target_of(connection, request.target)
            made = grant_role(connection, call.caller, request.subject, request.role, target, at=self._now())
            return _message(connection, bindings.get(connection, made))

        return await self._database.write(work)

    async def delete_binding(self, request: DeleteBindingRequest, call: Call) -> Empty:
        await self._database.write(lambda connection: bindings.delete(connection, request.id, at=self._now()))
        return Empty()
