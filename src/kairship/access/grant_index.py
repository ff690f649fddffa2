"""The index of everything that bindings grant, so that a decision is a few lookups.

Grants are indexed by scope and then by subject: a caller's subjects are intersected with those bound on a scope,
however many bindings there are. Several bindings may grant the same; a grant lasts until the last of them is gone.
"""

from collections.abc import Iterable, Iterator

from kairship.access.bindings import Binding, intern_permissions
from kairship.access.callers import Caller, Subject, subject
from kairship.access.scopes import PLATFORM, GrantScope, instance_of
from kairship.resources import SubjectKind


class GrantIndex:
    """One task writes it; readers in the same event loop read it without awaiting."""

    def __init__(self) -> None:
        self.version = 0
        """Grows with every change."""
        self._bindings: dict[str, Binding] = {}
        self._granted: dict[GrantScope, dict[Subject, frozenset[str]]] = {}
        # The bindings that a grant consists of, to compute it again when one of them goes.
        self._sources: dict[tuple[GrantScope, Subject], dict[str, Binding]] = {}
        self._scopes: dict[Subject, set[GrantScope]] = {}
        # By instance: the subjects with a grant on it or in it, each with the number of its scopes.
        self._within: dict[str, dict[Subject, int]] = {}

    def __len__(self) -> int:
        return len(self._bindings)

    def put(self, binding: Binding) -> None:
        self.remove(binding.name)
        scope = binding.grant_scope
        if scope is None:
            return
        self.version += 1
        self._bindings[binding.name] = binding
        sources = self._sources.setdefault((scope, binding.subject), {})
        sources[binding.name] = binding
        self._grant(scope, binding.subject, sources)

    def remove(self, name: str) -> None:
        binding = self._bindings.pop(name, None)
        if binding is None or (scope := binding.grant_scope) is None:
            return
        self.version += 1
        sources = self._sources[scope, binding.subject]
        del sources[name]
        if sources:
            self._grant(scope, binding.subject, sources)
        else:
            del self._sources[scope, binding.subject]
            self._withdraw(scope, binding.subject)

    def grants(self, caller: Caller, permission: str, scopes: Iterable[GrantScope]) -> bool:
        """Whether the caller holds the permission on any of these scopes."""
        for scope in scopes:
            held = self._granted.get(scope)
            if held is not None:
                for subject_ in held.keys() & caller.subjects:
                    if permission in held[subject_]:
                        return True
        return False

    def grants_to_one_subject(self, caller: Caller, permissions: frozenset[str], scope: GrantScope) -> bool:
        """Whether a single subject of the caller holds all these permissions on the scope.

        RBAC inside an instance is written per subject, so permissions of several subjects do not add up there.
        """
        held = self._granted.get(scope)
        return held is not None and any(permissions <= held[each] for each in held.keys() & caller.subjects)

    def granting(self, caller: Caller, permission: str, scopes: Iterable[GrantScope]) -> Iterator[Binding]:
        """The bindings by which the caller holds the permission on these scopes."""
        for scope in scopes:
            for subject_ in sorted(self._granted.get(scope, {}).keys() & caller.subjects):
                for binding in self._sources[scope, subject_].values():
                    if permission in binding.spec.permissions:
                        yield binding

    def grants_anything_in(self, caller: Caller, instance_uid: str) -> bool:
        """Whether the caller holds any permission on the instance or on a namespace of it."""
        within = self._within.get(instance_uid)
        return within is not None and not within.keys().isdisjoint(caller.subjects)

    def scopes(self, caller: Caller, permission: str) -> Iterator[GrantScope]:
        """Every scope on which the caller holds the permission. The cost grows with the caller's bindings."""
        for subject_ in caller.subjects:
            for scope in self._scopes.get(subject_, ()):
                if permission in self._granted[scope][subject_]:
                    yield scope

    def groups_on(self, caller: Caller, instance_uid: str) -> tuple[str, ...]:
        """The caller's groups that are bound on the instance, in it, or on the platform.

        The instance learns of no other groups.
        """
        within, everywhere = self._within.get(instance_uid, {}), self._granted.get(PLATFORM, {})
        named = ((group, subject(SubjectKind.GROUP, group)) for group in caller.groups)
        return tuple(group for group, its in named if its in within or its in everywhere)

    def _grant(self, scope: GrantScope, subject_: Subject, sources: dict[str, Binding]) -> None:
        held = self._granted.setdefault(scope, {})
        uid = instance_of(scope)
        if subject_ not in held:
            self._scopes.setdefault(subject_, set()).add(scope)
            if uid is not None:
                within = self._within.setdefault(uid, {})
                within[subject_] = within.get(subject_, 0) + 1
        granted = frozenset().union(*(source.spec.permissions for source in sources.values()))
        held[subject_] = intern_permissions(granted)

    def _withdraw(self, scope: GrantScope, subject_: Subject) -> None:
        _drop(self._granted, scope, subject_)
        scopes = self._scopes[subject_]
        scopes.remove(scope)
        if not scopes:
            del self._scopes[subject_]
        uid = instance_of(scope)
        if uid is not None:
            self._within[uid][subject_] -= 1
            if not self._within[uid][subject_]:
                _drop(self._within, uid, subject_)


def _drop(outer: dict, key: object, inner: object) -> None:  # type: ignore[type-arg]
    """Deletes an entry, and the inner dict when it is empty: memory follows the present bindings, not past ones."""
    del outer[key][inner]
    if not outer[key]:
        del outer[key]
