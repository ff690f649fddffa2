"""Who holds which permissions on one instance, collected from bindings. Pure functions.

Grants add up before they become RBAC, because two bindings together can give a right that neither gives alone: one
allows an action everywhere, the other opens the namespaces of the system. Subjects that hold the same permissions in
the end share their RBAC objects.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from kairship.access import Binding
from kairship.access.bindings import intern_permissions
from kairship.resources import ScopeLevel, SubjectKind, is_reserved
from kairship.resources.access_binding import Subject, name_inside

Permissions = frozenset[str]


class Grants(msgspec.Struct, frozen=True):
    """The permissions that subjects hold on one instance."""

    on_instance: Mapping[str, Permissions]
    """By subject: the permissions on the whole instance."""
    on_namespaces: Mapping[tuple[str, str], Permissions]
    """By namespace and subject: the permissions in that namespace."""
    subjects: frozenset[str]
    """All subjects of bindings, also of those without permissions, and all members of groups that are subjects:
    Karmada's proxy must know the name of a user and of all groups that come with the request."""


def subject_name(subject: Subject) -> str:
    return name_inside(subject.kind, subject.id)


def applies_to(binding: Binding, instance_uid: str) -> bool:
    """Whether a binding is about an instance, revoked or not."""
    scope = binding.spec.scope
    return scope.level is ScopeLevel.PLATFORM or scope.instance_uid == instance_uid


def collect_grants(bindings: Iterable[Binding], instance_uid: str) -> Grants:
    on_instance: defaultdict[str, set[str]] = defaultdict(set)
    on_namespaces: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    subjects: set[str] = set()
    for binding in bindings:
        subject, held = subject_name(binding.spec.subject), binding.spec.permissions
        if binding.grant_scope is not None and applies_to(binding, instance_uid):
            subjects.add(subject)
            subjects |= {name_inside(SubjectKind.USER, user) for user in binding.spec.members}
        match binding.grant_scope:
            case ("platform", _, _):
                on_instance[subject] |= held
            case ("instance", uid, _) if uid == instance_uid:
                on_instance[subject] |= held
            # A right on a namespace never opens the namespaces that Karmada keeps for itself.
            case ("namespace", uid, namespace) if uid == instance_uid and not is_reserved(namespace):
                on_namespaces[namespace, subject] |= held
    return Grants(
        on_instance={subject: intern_permissions(frozenset(held)) for subject, held in on_instance.items() if held},
        on_namespaces={key: intern_permissions(frozenset(held)) for key, held in on_namespaces.items() if held},
        subjects=frozenset(subjects),
    )
