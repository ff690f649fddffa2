"""Bindings as the authoriser keeps them: the part of each custom resource that decides.

Thousands of bindings share a handful of roles, so equal sets of permissions are kept once: the memory of 50,000
bindings must not be 50,000 lists of two hundred strings.
"""

import sys
from weakref import WeakValueDictionary

import msgspec

from kairship.access.callers import Subject, subject
from kairship.access.places import Place, place_of
from kairship.reconcile import Metadata
from kairship.resources.access_binding import Origin, Role, Scope
from kairship.resources.access_binding import Subject as SubjectField

_SETS: WeakValueDictionary[frozenset[str], frozenset[str]] = WeakValueDictionary()


def shared(permissions: tuple[str, ...] | frozenset[str]) -> frozenset[str]:
    """An equal set that is kept once."""
    wanted = frozenset(map(sys.intern, permissions))
    found = _SETS.get(wanted)
    if found is None:
        # The key must be another object than the value, or it would keep the value alive for ever.
        found = _SETS[frozenset(list(wanted))] = wanted
    return found


class BindingSpec(msgspec.Struct):
    """What decides, of the spec of an `AccessBinding`."""

    subject: SubjectField
    role: Role
    scope: Scope
    origin: Origin
    sequence: int
    permissions: frozenset[str] = frozenset()
    members: tuple[str, ...] = ()
    revoked: bool = False

    def __post_init__(self) -> None:
        self.permissions = shared(self.permissions)


class Binding(msgspec.Struct):
    """The shape of an `AccessBinding`. Not frozen only because its set is replaced by a shared one when decoded."""

    metadata: Metadata
    spec: BindingSpec

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def subject(self) -> Subject:
        return subject(self.spec.subject.kind, self.spec.subject.id)

    @property
    def place(self) -> Place | None:
        """None if it grants nothing: it was withdrawn, is going away, or its scope is not understood."""
        if self.spec.revoked or self.metadata.deletion_timestamp is not None:
            return None
        return place_of(self.spec.scope)
