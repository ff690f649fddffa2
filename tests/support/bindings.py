"""Bindings for tests of rights, and a world in which they are decided."""

import itertools
from collections.abc import Iterable

from kairship.access import (
    Authoriser,
    Binding,
    Caller,
    Decision,
    Freshness,
    GrantIndex,
    KnownInstances,
    Role,
    permissions_of,
)
from kairship.access.bindings import BindingSpec
from kairship.reconcile import Metadata
from kairship.resources import ScopeLevel, SubjectKind
from kairship.resources.access_binding import Origin, OriginKind, Scope, Subject
from kairship.resources.access_binding import Role as RoleField
from support.reconcile import FakeClock

_numbers = itertools.count()


def on(
    instance: str | None = None,
    namespace: str | None = None,
    *,
    workspace: str | None = None,
    cluster: str | None = None,
) -> Scope:
    """Returns the scope of instance or cluster `name`, whose UID is `uid-name`, or of the platform without any name."""
    if cluster is not None:
        return Scope(level=ScopeLevel.CLUSTER, cluster=cluster, cluster_uid=f"uid-{cluster}")
    if workspace is not None:
        return Scope(level=ScopeLevel.WORKSPACE, workspace=workspace)
    if instance is None:
        return Scope(level=ScopeLevel.PLATFORM)
    level = ScopeLevel.INSTANCE if namespace is None else ScopeLevel.NAMESPACE
    return Scope(level=level, instance=instance, instance_uid=f"uid-{instance}", namespace=namespace)


def bind(
    subject: str, what: Role | Iterable[str], scope: Scope, *, name: str | None = None, revoked: bool = False
) -> Binding:
    """Returns a binding. `subject` is a user, or a group if it begins with `%`."""
    kind = SubjectKind.GROUP if subject.startswith("%") else SubjectKind.USER
    granted = permissions_of(what) if isinstance(what, Role) else frozenset(what)
    return Binding(
        metadata=Metadata(name=name or f"binding-{next(_numbers)}"),
        spec=BindingSpec(
            subject=Subject(kind=kind, id=subject.removeprefix("%")),
            role=RoleField(id=what.id if isinstance(what, Role) else "custom"),
            scope=scope,
            origin=Origin(kind=OriginKind.RESOURCE),
            sequence=1,
            permissions=granted,
            revoked=revoked,
        ),
    )


class World:
    """The instances east and west with bindings on them."""

    def __init__(self, *bindings: Binding) -> None:
        self.clock = FakeClock()
        self.grants = GrantIndex()
        self.instances = KnownInstances({name: f"uid-{name}" for name in ("east", "west")})
        self.freshness = Freshness(self.clock)
        self.freshness.mark_connected()
        self.authoriser = Authoriser(self.grants, self.instances, self.freshness)
        for binding in bindings:
            self.grants.put(binding)

    def ask(self, who: str, permission: str, instance: str, namespace: str | None = None) -> Decision:
        return self.authoriser.on_instance(Caller(who), permission, instance, namespace)
