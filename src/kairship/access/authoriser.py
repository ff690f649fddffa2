"""The authoriser: decides from memory whether a caller may do something.

Default deny: what no binding grants is refused, and so is a permission that the table does not have. Nothing here
awaits or does I/O; a decision is a few lookups, at any number of bindings.
"""

from collections.abc import Mapping

from kairship.access import scopes
from kairship.access.callers import Caller
from kairship.access.catalogue.attributes import (
    MEMBER_PROXY_PERMISSION,
    AnyRight,
    Attributes,
    is_closed_in_members,
    permission_for,
    permission_for_non_resource_path,
)
from kairship.access.catalogue.kinds import KARMADA
from kairship.access.catalogue.system_namespaces import (
    SYSTEM_NAMESPACES_PERMISSION,
    guard_of,
    includes_system_namespaces,
    is_reserved,
)
from kairship.access.catalogue.table import permissions
from kairship.access.decisions import Decision, Explanation, RbacScope
from kairship.access.freshness import Freshness
from kairship.access.grant_index import GrantIndex
from kairship.access.scopes import PLATFORM, GrantScope
from kairship.resources import Coverage

_ON_PLATFORM: tuple[GrantScope, ...] = (PLATFORM,)
_TABLE = permissions()


class KnownInstances:
    """The names and UIDs of the present instances. The informer keeps it up to date."""

    def __init__(self, uids: Mapping[str, str] | None = None) -> None:
        self.version = 0
        """Grows with every change."""
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
    def __init__(self, grants: GrantIndex, instances: KnownInstances, freshness: Freshness) -> None:
        self._grants = grants
        self._instances = instances
        self._freshness = freshness

    @property
    def version(self) -> int:
        """Changes with everything that decisions depend on, except `is_current`."""
        return self._grants.version + self._instances.version

    @property
    def is_current(self) -> bool:
        """Whether bindings are current enough to decide about every permission, delicate ones included."""
        return self._freshness.suffices(delicate=True)

    def is_current_for(self, permission: str) -> bool:
        """Whether bindings are current enough to decide about this permission."""
        defined = _TABLE.get(permission)
        return self._freshness.suffices(delicate=defined is not None and defined.delicate)

    def on_platform(self, caller: Caller, permission: str) -> Decision:
        return self._decide(caller, permission, _ON_PLATFORM)

    def on_self(self, caller: Caller, permission: str) -> Decision:
        """Whether the caller may use a permission that every signed-in user has. A token may be limited to others."""
        defined = _TABLE.get(permission)
        own = defined is not None and defined.role is None and self._within_token(caller, permission)
        return Decision.ALLOWED if own else Decision.FORBIDDEN

    def on_filtered_list(self, caller: Caller, permission: str) -> Decision:
        """Whether the caller may list over the platform. Such a list shows only what the caller may see, or nothing."""
        within = permission in _TABLE and self._within_token(caller, permission)
        return self._unless_stale(permission, Decision.ALLOWED if within else Decision.FORBIDDEN)

    def on_part_of_instance(self, caller: Caller, permission: str, instance: str) -> Decision:
        """Whether the caller may list over an instance: the permission on one of its namespaces is enough."""
        decision = self.on_instance(caller, permission, instance)
        if decision is Decision.FORBIDDEN and self.coverage(caller, permission).includes(instance):
            return Decision.ALLOWED
        return decision

    def on_workspace(self, caller: Caller, permission: str, workspace: str) -> Decision:
        held = (PLATFORM, scopes.workspace(workspace))
        decision = self._decide(caller, permission, held)
        if decision is Decision.FORBIDDEN and not self._grants.grants(caller, "ghippo.workspaces.get", held):
            return Decision.HIDDEN
        return decision

    def on_instance(
        self,
        caller: Caller,
        permission: str,
        instance: str,
        namespace: str | None = None,
        *,
        guard: str | None = None,
    ) -> Decision:
        """Whether the caller may use the permission on an instance, or on one namespace of it.

        `guard` is the permission that a system namespace needs beside this one, if the request says more of it.
        An instance that is not known here may have been created a moment ago, so a right on the whole platform counts
        for it too.
        """
        uid = self._instances.uid(instance)
        # A right on a namespace never opens the namespaces that Karmada keeps for itself.
        reserved = namespace is not None and is_reserved(namespace)
        counts = None if reserved else _where_it_counts(permission, namespace)
        decision = self._decide(caller, permission, _enclosing_scopes(uid, counts))
        if decision is Decision.FORBIDDEN and (uid is None or not self._sees(caller, uid)):
            return Decision.HIDDEN
        if decision is Decision.ALLOWED and reserved:
            return self._decide(caller, guard or guard_of(permission), _enclosing_scopes(uid, None))
        return decision

    def sees_instance(self, caller: Caller, instance: str) -> Decision:
        """Whether the caller may know of the instance: any right on it is enough."""
        uid = self._instances.uid(instance)
        if uid is None or not self._sees(caller, uid):
            return self._unless_stale("", Decision.HIDDEN)
        return self._unless_stale("", Decision.ALLOWED)

    def sees_reserved(self, caller: Caller, instance: str) -> bool:
        """Whether lists and watches over all namespaces of the instance have the reserved namespaces for the caller.

        The request itself has been decided before, so bindings are current enough for a read. A decision about the
        permission as such would refuse administrators at once what they may otherwise read for a minute.
        """
        held = _enclosing_scopes(self._instances.uid(instance), None)
        return self._within_token(caller, SYSTEM_NAMESPACES_PERMISSION) and self._grants.grants(
            caller, SYSTEM_NAMESPACES_PERMISSION, held
        )

    def on_kubernetes_request(
        self, caller: Caller, instance: str, request: Attributes, *, member: bool = False
    ) -> Decision:
        """Whether the caller may make this request to the Kubernetes API of an instance, or of a member of it.

        A request over all namespaces needs the right on the whole instance.
        """
        need = None if member and is_closed_in_members(request) else permission_for(request)
        return self._on_requirement(caller, instance, need, request, member=member)

    def on_non_resource_path(self, caller: Caller, instance: str, verb: str, path: str) -> Decision:
        """Whether the caller may make this non-resource request to the Kubernetes API of an instance."""
        return self._on_requirement(caller, instance, permission_for_non_resource_path(verb, path), None)

    def rbac_scope_inside(
        self, caller: Caller, instance: str, request: Attributes, *, member: bool
    ) -> RbacScope | None:
        """Where the RBAC that the caller's bindings mean inside an instance, or in its members, allows a read.

        None if that RBAC may allow less than all bindings together do: RBAC inside does not add up over a user and
        the user's groups, or over the platform and an instance.
        """
        need, uid = permission_for(request), self._instances.uid(instance)
        if not isinstance(need, str) or uid is None:
            return None
        if member and (request.group.endswith(KARMADA) or is_closed_in_members(request)):
            return None
        needed = frozenset({need, MEMBER_PROXY_PERMISSION} if member else {need})
        if not all(self._within_token(caller, each) for each in needed):
            return None
        if any(self._grants.grants_to_one_subject(caller, needed, scope) for scope in _enclosing_scopes(uid, None)):
            return RbacScope.INSTANCE
        namespace = _where_it_counts(need, request.namespace)
        if not namespace or is_reserved(namespace):
            return None
        within = scopes.namespace(uid, namespace)
        return RbacScope.NAMESPACE if self._grants.grants_to_one_subject(caller, needed, within) else None

    def coverage(self, caller: Caller, permission: str) -> Coverage:
        """Where the caller holds a permission; nowhere while bindings are not current enough for it."""
        if not self._within_token(caller, permission) or not self.is_current_for(permission):
            return Coverage()
        whole: set[str] = set()
        parts: dict[str, set[str]] = {}
        on_instance = _counts_on_instance(permission)
        clusters: set[str] = set()
        for scope in self._grants.scopes(caller, permission):
            match scope:
                case ("platform", _, _):
                    return Coverage(everywhere=True)
                case ("instance", uid, _) if name := self._instances.name(uid):
                    whole.add(name)
                case ("namespace", uid, namespace) if not on_instance and (name := self._instances.name(uid)):
                    parts.setdefault(name, set()).add(namespace)
                case ("cluster", uid, _):
                    clusters.add(uid)
        return Coverage(
            instances=frozenset(whole),
            namespaces={name: frozenset(held) for name, held in parts.items() if name not in whole},
            clusters=frozenset(clusters),
        )

    def workspaces(self, caller: Caller, permission: str) -> frozenset[str] | None:
        """The workspaces on which the caller holds a permission; None for all of them."""
        if not self._within_token(caller, permission) or not self.is_current_for(permission):
            return frozenset()
        found = set(self._grants.scopes(caller, permission))
        return None if PLATFORM in found else frozenset(name for kind, name, _ in found if kind == "workspace")

    def groups_on(self, caller: Caller, instance: str) -> tuple[str, ...]:
        """The caller's groups that the instance learns of, because they are bound there."""
        return self._grants.groups_on(caller, self._instances.uid(instance) or "")

    def explain(
        self, caller: Caller, permission: str, *, instance: str | None = None, namespace: str | None = None
    ) -> Explanation:
        """The decision with the bindings that allow it, or the least role that would."""
        if instance is None:
            decision, held = self.on_platform(caller, permission), _ON_PLATFORM
        else:
            decision = self.on_instance(caller, permission, instance, namespace)
            counts = _where_it_counts(permission, namespace)
            held = () if decision is Decision.HIDDEN else _enclosing_scopes(self._instances.uid(instance), counts)
        defined = _TABLE.get(permission)
        return Explanation(
            decision=decision,
            permission=permission,
            bindings=tuple(self._grants.granting(caller, permission, held)) if decision else (),
            role=defined.role if defined else None,
            outside_token=not self._within_token(caller, permission),
        )

    def _on_requirement(
        self,
        caller: Caller,
        instance: str,
        need: str | AnyRight | None,
        request: Attributes | None,
        *,
        member: bool = False,
    ) -> Decision:
        if need is AnyRight.ON_INSTANCE:
            return self.sees_instance(caller, instance)
        if need is None or request is None:
            seen = self.sees_instance(caller, instance)
            return Decision.FORBIDDEN if seen else seen
        guard = guard_of(str(need), request.path_of_resource, member=member)
        decision = self.on_instance(caller, str(need), instance, request.namespace or None, guard=guard)
        if decision and not request.namespace and includes_system_namespaces(request):
            return self.on_instance(caller, guard, instance)
        return decision

    def _sees(self, caller: Caller, uid: str) -> bool:
        # Of the rights on the platform only the one to see instances shows this instance.
        return self._grants.grants_anything_in(caller, uid) or self._grants.grants(
            caller, "kairship.instances.get", _ON_PLATFORM
        )

    def _decide(self, caller: Caller, permission: str, held: tuple[GrantScope, ...]) -> Decision:
        defined = _TABLE.get(permission)
        if defined is None:
            return Decision.FORBIDDEN
        if not self._freshness.suffices(delicate=defined.delicate):
            return Decision.UNCERTAIN
        within = caller.limited_to is None or permission in caller.limited_to
        return Decision.ALLOWED if within and self._grants.grants(caller, permission, held) else Decision.FORBIDDEN

    def _unless_stale(self, permission: str, decision: Decision) -> Decision:
        """A refusal may rest on stale bindings as well. Then it is UNCERTAIN, so that the caller tries again."""
        return decision if self.is_current_for(permission) else Decision.UNCERTAIN

    def _within_token(self, caller: Caller, permission: str) -> bool:
        return caller.limited_to is None or permission in caller.limited_to


def _counts_on_instance(permission: str) -> bool:
    """Whether only rights on a whole instance count for the permission."""
    defined = _TABLE.get(permission)
    return defined is not None and defined.on_instance


def _where_it_counts(permission: str, namespace: str | None) -> str | None:
    """The namespace in which a right on that namespace would count; None if only a right on the instance does."""
    return None if _counts_on_instance(permission) else namespace


def _enclosing_scopes(uid: str | None, namespace: str | None) -> tuple[GrantScope, ...]:
    """An instance or a namespace of it, and every scope above: a grant on any of them counts."""
    if uid is None:
        return _ON_PLATFORM
    if namespace is None:
        return (PLATFORM, scopes.instance(uid))
    return (PLATFORM, scopes.instance(uid), scopes.namespace(uid, namespace))
