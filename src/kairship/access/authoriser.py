"""The authoriser: whether a caller may do something, answered from memory.

Default deny: what no binding grants is refused, and so is a permission that the table does not have. Nothing here waits
or calls anybody; a question is a few lookups, at any number of bindings.
"""

from collections.abc import Mapping
from typing import Protocol

from kairship.access import namespaces, places
from kairship.access.callers import Caller
from kairship.access.decisions import Explanation, Extent, Verdict
from kairship.access.freshness import Freshness
from kairship.access.holdings import Holdings
from kairship.access.kinds import KARMADA
from kairship.access.places import PLATFORM, Place
from kairship.access.proxy import TO_MEMBERS, Attributes, Everyone, permission_for, permission_for_path
from kairship.access.table import permissions
from kairship.resources import Reach

_ON_PLATFORM: tuple[Place, ...] = (PLATFORM,)
_TABLE = permissions()


class Instances(Protocol):
    """Which instances there are."""

    @property
    def version(self) -> int:
        """Counts the changes."""
        ...

    def uid(self, name: str) -> str | None: ...

    def name(self, uid: str) -> str | None: ...


class KnownInstances:
    """A directory of instances that somebody fills."""

    def __init__(self, uids: Mapping[str, str] | None = None) -> None:
        self.version = 0
        self._uids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for name, uid in (uids or {}).items():
            self.put(name, uid)

    def put(self, name: str, uid: str) -> None:
        self.remove(name)
        self.version += 1
        self._uids[name] = uid
        self._names[uid] = name

    def remove(self, name: str) -> None:
        uid = self._uids.pop(name, None)
        if uid is not None:
            self.version += 1
            del self._names[uid]

    def uid(self, name: str) -> str | None:
        return self._uids.get(name)

    def name(self, uid: str) -> str | None:
        return self._names.get(uid)


class Authoriser:
    def __init__(self, holdings: Holdings, instances: Instances, freshness: Freshness) -> None:
        self._holdings = holdings
        self._instances = instances
        self._freshness = freshness

    @property
    def version(self) -> int:
        """Another one when anything has changed that decisions rest on, except `is_certain`."""
        return self._holdings.version + self._instances.version

    @property
    def is_certain(self) -> bool:
        """Whether bindings are current enough to decide about everything."""
        return self._freshness.trusts(delicate=True)

    def on_platform(self, caller: Caller, permission: str) -> Verdict:
        return self._decide(caller, permission, _ON_PLATFORM)

    def on_self(self, caller: Caller, permission: str) -> Verdict:
        """What everybody has who is signed in. A token may be for less."""
        defined = _TABLE.get(permission)
        own = defined is not None and defined.role is None and self._within_token(caller, permission)
        return Verdict.ALLOWED if own else Verdict.FORBIDDEN

    def somewhere(self, caller: Caller, permission: str) -> Verdict:
        """For lists over the platform, which show what is within reach, be it nothing."""
        within = permission in _TABLE and self._within_token(caller, permission)
        return self._trusting(permission, Verdict.ALLOWED if within else Verdict.FORBIDDEN)

    def on_part_of_instance(self, caller: Caller, permission: str, instance: str) -> Verdict:
        """For lists over an instance: it is enough to hold the permission on one namespace of it."""
        verdict = self.on_instance(caller, permission, instance)
        if verdict is Verdict.FORBIDDEN and self.reach(caller, permission).includes(instance):
            return Verdict.ALLOWED
        return verdict

    def on_workspace(self, caller: Caller, permission: str, workspace: str) -> Verdict:
        held = (PLATFORM, places.workspace(workspace))
        verdict = self._decide(caller, permission, held)
        if verdict is Verdict.FORBIDDEN and not self._holdings.grants(caller, "ghippo.workspaces.get", held):
            return Verdict.HIDDEN
        return verdict

    def on_instance(self, caller: Caller, permission: str, instance: str, namespace: str | None = None) -> Verdict:
        """On an instance, or on one namespace of it.

        One that is not known here may have been made a moment ago: whoever has the right on the whole platform is
        not told otherwise by somebody who only heard less.
        """
        uid = self._instances.uid(instance)
        # What Karmada keeps for itself is nobody's by a right on a namespace.
        reserved = namespace is not None and namespaces.is_reserved(namespace)
        verdict = self._decide(caller, permission, _places(uid, None if reserved else namespace))
        if verdict is Verdict.FORBIDDEN and (uid is None or not self._sees(caller, uid)):
            return Verdict.HIDDEN
        if verdict is Verdict.ALLOWED and reserved:
            return self._decide(caller, namespaces.NEEDED, _places(uid, None))
        return verdict

    def sees_instance(self, caller: Caller, instance: str) -> Verdict:
        """Whether the caller has any right on it, which is enough to know of it."""
        uid = self._instances.uid(instance)
        if uid is None or not self._sees(caller, uid):
            return self._trusting("", Verdict.HIDDEN)
        return self._trusting("", Verdict.ALLOWED)

    def of_proxy(self, caller: Caller, instance: str, request: Attributes) -> Verdict:
        """A request of Kubernetes itself. One over all namespaces needs the right on the whole instance."""
        return self._of_need(caller, instance, permission_for(request), request)

    def of_proxy_path(self, caller: Caller, instance: str, verb: str, path: str) -> Verdict:
        return self._of_need(caller, instance, permission_for_path(verb, path), None)

    def extent_inside(self, caller: Caller, instance: str, request: Attributes, *, member: bool) -> Extent | None:
        """How far a read that bindings allow is allowed by the RBAC that they mean in an instance, or in its members.

        None if it may be less there than bindings taken together allow here: inside, nothing adds up over a person and
        the person's groups, or over the platform and an instance.
        """
        need, uid = permission_for(request), self._instances.uid(instance)
        if not isinstance(need, str) or uid is None or (member and request.group.endswith(KARMADA)):
            return None
        needed = frozenset({need, TO_MEMBERS} if member else {need})
        if not all(self._within_token(caller, each) for each in needed):
            return None
        if any(self._holdings.grants_together(caller, needed, place) for place in _places(uid, None)):
            return Extent.WHOLE
        if not request.namespace or namespaces.is_reserved(request.namespace):
            return None
        within = places.namespace(uid, request.namespace)
        return Extent.NAMESPACE if self._holdings.grants_together(caller, needed, within) else None

    def reach(self, caller: Caller, permission: str) -> Reach:
        """Where the caller holds a permission. Nothing, if bindings cannot be trusted for it."""
        if not self._within_token(caller, permission) or not self.trusts(permission):
            return Reach()
        whole: set[str] = set()
        parts: dict[str, set[str]] = {}
        for place in self._holdings.places(caller, permission):
            match place:
                case ("platform", _, _):
                    return Reach(everywhere=True)
                case ("instance", uid, _) if name := self._instances.name(uid):
                    whole.add(name)
                case ("namespace", uid, namespace) if name := self._instances.name(uid):
                    parts.setdefault(name, set()).add(namespace)
        return Reach(
            instances=frozenset(whole),
            namespaces={name: frozenset(held) for name, held in parts.items() if name not in whole},
        )

    def workspaces(self, caller: Caller, permission: str) -> frozenset[str] | None:
        """The workspaces on which the caller holds a permission; None for all."""
        if not self._within_token(caller, permission) or not self.trusts(permission):
            return frozenset()
        found = set(self._holdings.places(caller, permission))
        return None if PLATFORM in found else frozenset(name for kind, name, _ in found if kind == "workspace")

    def groups_on(self, caller: Caller, instance: str) -> tuple[str, ...]:
        """Those of the caller's groups that the instance is told of."""
        return self._holdings.groups_on(caller, self._instances.uid(instance) or "")

    def explain(
        self, caller: Caller, permission: str, *, instance: str | None = None, namespace: str | None = None
    ) -> Explanation:
        """Which bindings allow it, or the least role that would."""
        if instance is None:
            verdict, held = self.on_platform(caller, permission), _ON_PLATFORM
        else:
            verdict = self.on_instance(caller, permission, instance, namespace)
            held = () if verdict is Verdict.HIDDEN else _places(self._instances.uid(instance), namespace)
        defined = _TABLE.get(permission)
        return Explanation(
            verdict=verdict,
            permission=permission,
            bindings=tuple(self._holdings.granting(caller, permission, held)) if verdict else (),
            role=defined.role if defined else None,
            outside_token=not self._within_token(caller, permission),
        )

    def trusts(self, permission: str) -> bool:
        """Whether bindings are current enough to decide about this permission."""
        defined = _TABLE.get(permission)
        return self._freshness.trusts(delicate=defined is not None and defined.delicate)

    def _of_need(
        self, caller: Caller, instance: str, need: str | Everyone | None, request: Attributes | None
    ) -> Verdict:
        if need is Everyone.WITH_ANY_RIGHT:
            return self.sees_instance(caller, instance)
        if need is None or request is None:
            seen = self.sees_instance(caller, instance)
            return Verdict.FORBIDDEN if seen else seen
        verdict = self.on_instance(caller, str(need), instance, request.namespace or None)
        # A list of every Secret would have those that give away member clusters.
        if verdict and request.resource == "secrets" and not request.namespace:
            return self.on_instance(caller, namespaces.NEEDED, instance)
        return verdict

    def _sees(self, caller: Caller, uid: str) -> bool:
        # Whoever may see instances of the platform may see this one; other rights on the platform do not show any.
        return self._holdings.touches(caller, uid) or self._holdings.grants(
            caller, "kairship.instances.get", _ON_PLATFORM
        )

    def _decide(self, caller: Caller, permission: str, held: tuple[Place, ...]) -> Verdict:
        defined = _TABLE.get(permission)
        if defined is None:
            return Verdict.FORBIDDEN
        if not self._freshness.trusts(delicate=defined.delicate):
            return Verdict.UNCERTAIN
        within = caller.limited_to is None or permission in caller.limited_to
        return Verdict.ALLOWED if within and self._holdings.grants(caller, permission, held) else Verdict.FORBIDDEN

    def _trusting(self, permission: str, verdict: Verdict) -> Verdict:
        """A refusal too may rest on what is out of date, and says so: the caller should come back, not give up."""
        return verdict if self.trusts(permission) else Verdict.UNCERTAIN

    def _within_token(self, caller: Caller, permission: str) -> bool:
        return caller.limited_to is None or permission in caller.limited_to


def _places(uid: str | None, namespace: str | None) -> tuple[Place, ...]:
    if uid is None:
        return _ON_PLATFORM
    if namespace is None:
        return (PLATFORM, places.instance(uid))
    return (PLATFORM, places.instance(uid), places.namespace(uid, namespace))
