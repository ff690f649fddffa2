"""Effective bindings: bindings on folders and workspaces, resolved to the instances, namespaces and clusters there.

Each row is one AccessBinding as receivers get it. A change gives a row a new sequence, which never decreases: it
follows the clock, so it does not even after the database was restored from a backup. A revoked binding stays as a
tombstone, a row with `revoked`. The rows above the last sequence that a receiver has acknowledged are all that it
needs, so the table is its own outbox. Groups are not resolved to users, but carry their members: Karmada needs the
users who make requests to member clusters.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from kairship.access import permissions_of
from kairship.access.catalogue import roles as built_in
from kairship.ghippo.database.schema import (
    bindings,
    clusters,
    counters,
    effective_bindings,
    folders,
    group_members,
    resources,
    roles,
    workspace_clusters,
    workspace_resources,
    workspaces,
)
from kairship.resources import AccessBindingSpec, ScopeLevel, SubjectKind
from kairship.resources.access_binding import MOST_MEMBERS, Origin, OriginKind, Role, Scope, Subject

_SEQUENCE = "effective"
_SEE_WORKSPACE = "ghippo.workspaces.get"
_BATCH = 500
_SUBJECTS = {kind.value: kind for kind in SubjectKind}


def refresh(connection: sa.Connection, identifiers: Sequence[str], *, at: int) -> None:
    """Recomputes the rows of these bindings, whether they still exist or not. In a write transaction."""
    for start in range(0, len(identifiers), _BATCH):
        _refresh(connection, identifiers[start : start + _BATCH], at=at)


def refresh_workspaces(connection: sa.Connection, identifiers: Iterable[int], *, at: int) -> None:
    """Recomputes the bindings on these workspaces and on every folder above them, after their resources changed."""
    targets: set[tuple[str, str]] = set()
    for identifier in identifiers:
        targets.add(("Workspace", str(identifier)))
        folder = connection.execute(sa.select(workspaces.c.folder_id).where(workspaces.c.id == identifier)).scalar()
        targets |= {("Folder", str(each)) for each in ancestors(connection, folder)}
    refresh_targets(connection, targets, at=at)


def refresh_targets(connection: sa.Connection, targets: Iterable[tuple[str, str]], *, at: int) -> None:
    """Recomputes the bindings on these targets, after their resources changed."""
    for kind, target in targets:
        query = sa.select(bindings.c.id).where(bindings.c.target_kind == kind, bindings.c.target_id == target)
        refresh(connection, list(connection.execute(query).scalars()), at=at)


def refresh_group(connection: sa.Connection, group: str, *, at: int) -> None:
    """Recomputes the bindings of a group, after its members changed."""
    query = sa.select(bindings.c.id).where(bindings.c.subject_kind == "Group", bindings.c.subject_id == group)
    refresh(connection, list(connection.execute(query).scalars()), at=at)


def ancestors(connection: sa.Connection, folder: int | None) -> list[int]:
    """A folder and its ancestors, the innermost first."""
    found: list[int] = []
    while folder is not None and folder not in found:
        found.append(folder)
        folder = connection.execute(sa.select(folders.c.parent_id).where(folders.c.id == folder)).scalar()
    return found


def workspaces_below(connection: sa.Connection, folder: int) -> list[int]:
    tree = sa.select(folders.c.id).where(folders.c.id == folder).cte("tree", recursive=True)
    tree = tree.union(sa.select(folders.c.id).join(tree, folders.c.parent_id == tree.c.id))
    query = sa.select(workspaces.c.id).join(tree, workspaces.c.folder_id == tree.c.id).order_by(workspaces.c.id)
    return list(connection.execute(query).scalars())


def delete_revoked(connection: sa.Connection, *, before: int, delivered: int | None = None) -> None:
    """Deletes tombstones from before a time. Receivers refuse deliveries of that age by their timestamps.

    Tombstones above `delivered` stay: an entrance that has not got them must go on hearing of them.
    """
    limit = before * 1000 if delivered is None else min(before * 1000, delivered + 1)
    connection.execute(
        sa.delete(effective_bindings).where(
            effective_bindings.c.revoked.is_(True), effective_bindings.c.sequence < limit
        )
    )


def states_after(connection: sa.Connection, sequence: int, *, limit: int) -> Sequence[sa.Row[Any]]:
    """The names and sequences of bindings above a sequence, revoked ones included, in the order of their sequences."""
    query = sa.select(effective_bindings.c.name, effective_bindings.c.sequence)
    later = query.where(effective_bindings.c.sequence > sequence).order_by(effective_bindings.c.sequence)
    return connection.execute(later.limit(limit)).all()


def _refresh(connection: sa.Connection, identifiers: Sequence[str], *, at: int) -> None:
    stored = {
        row.name: row
        for row in connection.execute(
            sa.select(effective_bindings).where(effective_bindings.c.binding_id.in_(identifiers))
        )
    }
    wanted: dict[str, tuple[str, AccessBindingSpec]] = {}
    for row in connection.execute(sa.select(bindings).where(bindings.c.id.in_(identifiers))).all():
        for spec in _resolved(connection, row):
            wanted[_name(row.id, spec.scope)] = (row.id, spec)
    for name, (binding, spec) in wanted.items():
        text = _encoded(spec)
        known = stored.get(name)
        if known is None or known.revoked or known.spec != text:
            _put(connection, name, binding, text, revoked=False, at=at)
    for name, row in stored.items():
        if name not in wanted and not row.revoked:
            _put(connection, name, row.binding_id, row.spec, revoked=True, at=at)


def _put(connection: sa.Connection, name: str, binding: str, spec: str, *, revoked: bool, at: int) -> None:
    sequence = _next_sequence(connection, at=at)
    connection.execute(sa.delete(effective_bindings).where(effective_bindings.c.name == name))
    connection.execute(
        sa.insert(effective_bindings).values(
            name=name, binding_id=binding, spec=spec, sequence=sequence, revoked=revoked
        )
    )


def _next_sequence(connection: sa.Connection, *, at: int) -> int:
    last = connection.execute(sa.select(counters.c.value).where(counters.c.name == _SEQUENCE)).scalar()
    if last is None:
        connection.execute(sa.insert(counters).values(name=_SEQUENCE, value=0))
    # Two apart: a receiver that cannot store this sequence revokes the former state with the one in between.
    value = max((last or 0) + 2, at * 1000)
    connection.execute(sa.update(counters).where(counters.c.name == _SEQUENCE).values(value=value))
    return value


def _resolved(connection: sa.Connection, binding: sa.Row[Any]) -> Iterator[AccessBindingSpec]:
    role, granted = _role(connection, binding.role_id)
    subject = Subject(kind=_SUBJECTS[binding.subject_kind], id=binding.subject_id)
    members = _members(connection, binding.subject_id) if subject.kind is SubjectKind.GROUP else ()

    def spec(scope: Scope, origin: Origin) -> AccessBindingSpec:
        return AccessBindingSpec(
            subject=subject,
            members=members,
            role=role,
            permissions=granted,
            scope=scope,
            origin=origin,
            sequence=1,
        )

    match binding.target_kind:
        case "Platform":
            yield spec(Scope(level=ScopeLevel.PLATFORM), Origin(kind=OriginKind.PLATFORM))
        case "Resource":
            name = connection.execute(sa.select(resources.c.name).where(resources.c.uid == binding.target_id)).scalar()
            if name is not None:
                yield spec(_scope(name, binding.target_id, binding.namespace), Origin(kind=OriginKind.RESOURCE))
        case "Workspace":
            name = connection.execute(
                sa.select(workspaces.c.name).where(workspaces.c.id == int(binding.target_id))
            ).scalar()
            origin = Origin(kind=OriginKind.WORKSPACE, id=binding.target_id, display_name=name or "")
            for scope in _scopes_of(connection, [int(binding.target_id)]):
                yield spec(scope, origin)
        case "Folder":
            name = connection.execute(sa.select(folders.c.name).where(folders.c.id == int(binding.target_id))).scalar()
            origin = Origin(kind=OriginKind.FOLDER, id=binding.target_id, display_name=name or "")
            for scope in _scopes_of(connection, workspaces_below(connection, int(binding.target_id))):
                yield spec(scope, origin)


def _members(connection: sa.Connection, group: str) -> tuple[str, ...]:
    query = sa.select(group_members.c.user_id).where(group_members.c.group_id == group)
    return tuple(connection.execute(query.order_by(group_members.c.user_id).limit(MOST_MEMBERS)).scalars())


def _scopes_of(connection: sa.Connection, identifiers: Sequence[int]) -> Iterator[Scope]:
    """The workspaces themselves, and the instances, namespaces and clusters that they hold."""
    for start in range(0, len(identifiers), _BATCH):
        batch = identifiers[start : start + _BATCH]
        for identifier in connection.execute(sa.select(workspaces.c.id).where(workspaces.c.id.in_(batch))).scalars():
            yield Scope(level=ScopeLevel.WORKSPACE, workspace=str(identifier))
        query = (
            sa.select(resources.c.name, resources.c.uid, workspace_resources.c.namespace)
            .join(resources, resources.c.uid == workspace_resources.c.instance_uid)
            .where(workspace_resources.c.workspace_id.in_(batch))
        )
        for row in connection.execute(query):
            yield _scope(row.name, row.uid, row.namespace)
        held = (
            sa.select(clusters.c.name, clusters.c.uid)
            .join(workspace_clusters, workspace_clusters.c.cluster_uid == clusters.c.uid)
            .where(workspace_clusters.c.workspace_id.in_(batch))
        )
        for row in connection.execute(held):
            yield Scope(level=ScopeLevel.CLUSTER, cluster=row.name, cluster_uid=row.uid)


def _scope(instance: str, uid: str, namespace: str) -> Scope:
    level = ScopeLevel.NAMESPACE if namespace else ScopeLevel.INSTANCE
    return Scope(level=level, instance=instance, instance_uid=uid, namespace=namespace or None)


def _role(connection: sa.Connection, identifier: str) -> tuple[Role, tuple[str, ...]]:
    known = built_in.BY_ID.get(identifier)
    if known is not None:
        return Role(id=identifier, display_name=known.title), tuple(sorted(permissions_of(known)))
    row = connection.execute(sa.select(roles).where(roles.c.id == identifier)).one()
    return Role(id=identifier, display_name=row.display_name), tuple(row.permissions.split())


def _name(binding: str, scope: Scope) -> str:
    """The name of a binding on a scope never changes, so that a change updates the object instead of replacing it."""
    parts = (binding, scope.level.value, scope.instance_uid or "", scope.namespace or "", scope.workspace or "")
    key = "/".join((*parts, scope.cluster_uid) if scope.cluster_uid else parts)
    return f"{binding}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _encoded(spec: AccessBindingSpec) -> str:
    return msgspec.json.encode(spec, order="deterministic").decode()


def spec_of(row: sa.Row[Any]) -> AccessBindingSpec:
    """The spec of a row, as it is delivered."""
    spec = msgspec.json.decode(row.spec, type=AccessBindingSpec)
    return msgspec.structs.replace(spec, sequence=row.sequence, revoked=row.revoked)


def of_user(connection: sa.Connection, user: str) -> list[AccessBindingSpec]:
    """The bindings in effect of a user and the user's groups."""
    groups = sa.select(group_members.c.group_id).where(group_members.c.user_id == user)
    own = sa.or_(
        sa.and_(bindings.c.subject_kind == "User", bindings.c.subject_id == user),
        sa.and_(bindings.c.subject_kind == "Group", bindings.c.subject_id.in_(groups)),
    )
    query = (
        sa.select(effective_bindings)
        .join(bindings, bindings.c.id == effective_bindings.c.binding_id)
        .where(own, effective_bindings.c.revoked.is_(False))
    )
    return [spec_of(row) for row in connection.execute(query)]


def last_sequence(connection: sa.Connection) -> int:
    return connection.execute(sa.select(counters.c.value).where(counters.c.name == _SEQUENCE)).scalar() or 0


def names_in_effect(connection: sa.Connection) -> frozenset[str]:
    query = sa.select(effective_bindings.c.name).where(effective_bindings.c.revoked.is_(False))
    return frozenset(connection.execute(query).scalars())


def in_effect_after(connection: sa.Connection, sequence: int) -> Iterator[tuple[str, AccessBindingSpec]]:
    """The bindings in effect above a sequence, by name."""
    later = sa.and_(effective_bindings.c.revoked.is_(False), effective_bindings.c.sequence > sequence)
    for row in connection.execute(sa.select(effective_bindings).where(later)):
        yield row.name, spec_of(row)


def visible_workspaces(connection: sa.Connection, user: str) -> frozenset[int] | None:
    """The workspaces that a user may see by any role; None for all of them."""
    found: set[int] = set()
    for spec in of_user(connection, user):
        if _SEE_WORKSPACE in spec.permissions:
            if spec.scope.level is ScopeLevel.PLATFORM:
                return None
            if spec.scope.workspace:
                found.add(int(spec.scope.workspace))
    return frozenset(found)
