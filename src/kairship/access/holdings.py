"""Everything that bindings grant, kept so that a question is a few lookups.

By place, then by subject: a caller's groups are compared with those bound at a place as sets, however many bindings
there are. Several bindings may grant the same; each grant lasts until the last of them is gone.
"""

from collections.abc import Iterable, Iterator

from kairship.access.bindings import Binding, shared
from kairship.access.callers import Caller, Subject, subject
from kairship.access.places import PLATFORM, Place, instance_of
from kairship.resources import SubjectKind


class Holdings:
    """Written by one task, read in the same event loop without waiting."""

    def __init__(self) -> None:
        self.version = 0
        """Counts the changes."""
        self._bindings: dict[str, Binding] = {}
        self._granted: dict[Place, dict[Subject, frozenset[str]]] = {}
        # What a grant is made of, to make it anew when one of its bindings goes.
        self._sources: dict[tuple[Place, Subject], dict[str, Binding]] = {}
        self._places: dict[Subject, set[Place]] = {}
        # By instance: who holds anything on it or in it, and on how many places.
        self._within: dict[str, dict[Subject, int]] = {}

    def __len__(self) -> int:
        return len(self._bindings)

    def put(self, binding: Binding) -> None:
        self.remove(binding.name)
        place = binding.place
        if place is None:
            return
        self.version += 1
        self._bindings[binding.name] = binding
        sources = self._sources.setdefault((place, binding.subject), {})
        sources[binding.name] = binding
        self._grant(place, binding.subject, sources)

    def remove(self, name: str) -> None:
        binding = self._bindings.pop(name, None)
        if binding is None or (place := binding.place) is None:
            return
        self.version += 1
        sources = self._sources[place, binding.subject]
        del sources[name]
        if sources:
            self._grant(place, binding.subject, sources)
        else:
            del self._sources[place, binding.subject]
            self._withdraw(place, binding.subject)

    def grants(self, caller: Caller, permission: str, places: Iterable[Place]) -> bool:
        """Whether the caller holds the permission on any of these places."""
        for place in places:
            held = self._granted.get(place)
            if held is not None:
                for subject_ in held.keys() & caller.subjects:
                    if permission in held[subject_]:
                        return True
        return False

    def grants_together(self, caller: Caller, permissions: frozenset[str], place: Place) -> bool:
        """Whether one of those who the caller is holds all of them on the place. RBAC adds nothing up over several."""
        held = self._granted.get(place)
        return held is not None and any(permissions <= held[each] for each in held.keys() & caller.subjects)

    def granting(self, caller: Caller, permission: str, places: Iterable[Place]) -> Iterator[Binding]:
        """The bindings by which that is so."""
        for place in places:
            for subject_ in sorted(self._granted.get(place, {}).keys() & caller.subjects):
                for binding in self._sources[place, subject_].values():
                    if permission in binding.spec.permissions:
                        yield binding

    def touches(self, caller: Caller, instance_uid: str) -> bool:
        """Whether the caller holds anything on the instance or on a namespace of it."""
        within = self._within.get(instance_uid)
        return within is not None and not within.keys().isdisjoint(caller.subjects)

    def places(self, caller: Caller, permission: str) -> Iterator[Place]:
        """Every place where the caller holds the permission. It costs as much as the caller has bindings."""
        for subject_ in caller.subjects:
            for place in self._places.get(subject_, ()):
                if permission in self._granted[place][subject_]:
                    yield place

    def groups_on(self, caller: Caller, instance_uid: str) -> tuple[str, ...]:
        """Those of the caller's groups that something is bound to there: the only ones that the instance is told.

        What is bound on the platform is bound there too.
        """
        within, everywhere = self._within.get(instance_uid, {}), self._granted.get(PLATFORM, {})
        named = ((group, subject(SubjectKind.GROUP, group)) for group in caller.groups)
        return tuple(group for group, its in named if its in within or its in everywhere)

    def _grant(self, place: Place, subject_: Subject, sources: dict[str, Binding]) -> None:
        held = self._granted.setdefault(place, {})
        uid = instance_of(place)
        if subject_ not in held:
            self._places.setdefault(subject_, set()).add(place)
            if uid is not None:
                within = self._within.setdefault(uid, {})
                within[subject_] = within.get(subject_, 0) + 1
        held[subject_] = shared(frozenset().union(*(source.spec.permissions for source in sources.values())))

    def _withdraw(self, place: Place, subject_: Subject) -> None:
        _drop(self._granted, place, subject_)
        places = self._places[subject_]
        places.remove(place)
        if not places:
            del self._places[subject_]
        uid = instance_of(place)
        if uid is not None:
            self._within[uid][subject_] -= 1
            if not self._within[uid][subject_]:
                _drop(self._within, uid, subject_)


def _drop(outer: dict, key: object, inner: object) -> None:  # type: ignore[type-arg]
    """Nothing is kept of what is empty: memory follows what there is, not what there ever was."""
    del outer[key][inner]
    if not outer[key]:
        del outer[key]
