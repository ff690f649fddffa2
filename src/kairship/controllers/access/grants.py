"""Who holds what on one instance, gathered from bindings. Pure functions.

Grants add up before they become RBAC: what one binding allows everywhere and another in the namespaces of the system is
a right that neither gives alone, and whoever holds the same as others shares their objects.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from kairship.access import Binding
from kairship.access.bindings import shared
from kairship.resources import ScopeLevel, SubjectKind, is_reserved
from kairship.resources.access_binding import Subject, name_inside

Permissions = frozenset[str]


class Grants(msgspec.Struct, frozen=True):
    whole: Mapping[str, Permissions]
    """By subject: what holds on the whole instance."""
    parts: Mapping[tuple[str, str], Permissions]
    """By namespace and subject: what holds in that namespace."""
    named: frozenset[str]
    """Everybody who is bound there, also to nothing, and everybody in groups that are: Karmada's proxy must know the
    names of a person and of all groups that come with it."""


def subject_name(subject: Subject) -> str:
    return name_inside(subject.kind, subject.id)


def concerns(binding: Binding, instance_uid: str) -> bool:
    """Whether a binding means anything on an instance, revoked or not."""
    scope = binding.spec.scope
    return scope.level is ScopeLevel.PLATFORM or scope.instance_uid == instance_uid


def gather(bindings: Iterable[Binding], instance_uid: str) -> Grants:
    whole: defaultdict[str, set[str]] = defaultdict(set)
    parts: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    named: set[str] = set()
    for binding in bindings:
        subject, held = subject_name(binding.spec.subject), binding.spec.permissions
        if binding.place is not None and concerns(binding, instance_uid):
            named.add(subject)
            named |= {name_inside(SubjectKind.USER, person) for person in binding.spec.members}
        match binding.place:
            case ("platform", _, _):
                whole[subject] |= held
            case ("instance", uid, _) if uid == instance_uid:
                whole[subject] |= held
            # What Karmada keeps for itself is nobody's by a right on a namespace.
            case ("namespace", uid, namespace) if uid == instance_uid and not is_reserved(namespace):
                parts[namespace, subject] |= held
    return Grants(
        whole={subject: shared(frozenset(held)) for subject, held in whole.items() if held},
        parts={key: shared(frozenset(held)) for key, held in parts.items() if held},
        named=frozenset(named),
    )
