"""Bindings as the authoriser keeps them: the fields of each `AccessBinding` that decisions depend on.

Thousands of bindings share a handful of roles, so equal sets of permissions are interned: the memory of 50,000
bindings must not be 50,000 lists of two hundred strings.
"""

import sys
from weakref import WeakValueDictionary

import msgspec

from kairship.access.callers import Subject, subject
from kairship.access.scopes import GrantScope, grant_scope_of
from kairship.reconcile import Metadata
from kairship.resources.access_binding import Origin, Role, Scope
from kairship.resources.access_binding import Subject as SubjectField

_SETS: WeakValueDictionary[frozenset[str], frozenset[str]] = WeakValueDictionary()


def intern_permissions(permissions: tuple[str, ...] | frozenset[str]) -> frozenset[str]:
    """Returns the one set in memory that is equal to this one."""
    wanted = frozenset(map(sys.intern, permissions))
    found = _SETS.get(wanted)
    if found is None:
        # The key must be another object than the value, or it would keep the value alive for ever.
        found = _SETS[frozenset(list(wanted))] = wanted
    return found


class BindingSpec(msgspec.Struct):
    """The fields of an `AccessBinding`'s spec that decisions depend on."""

    subject: SubjectField
    role: Role
    scope: Scope
    origin: Origin
    sequence: int
    permissions: frozenset[str] = frozenset()
    members: tuple[str, ...] = ()
    revoked: bool = False

    def __post_init__(self) -> None:
        self.permissions = intern_permissions(self.permissions)


class Binding(msgspec.Struct):
    """An `AccessBinding`. It is mutable only because decoding replaces its permissions by the interned set."""

    metadata: Metadata
    spec: BindingSpec

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def subject(self) -> Subject:
        return subject(self.spec.subject.kind, self.spec.subject.id)

    @property
    def grant_scope(self) -> GrantScope | None:
        """None if the binding grants nothing: it was revoked, is being deleted, or its scope is not understood."""
        if self.spec.revoked or self.metadata.deletion_timestamp is not None:
            return None
        return grant_scope_of(self.spec.scope)
