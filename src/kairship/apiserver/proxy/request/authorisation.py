"""What the plane's bindings say about a proxy request, and which identity the caller has inside.

A caller without any right on an instance gets the reply of an instance that does not exist. For every other caller the
instance's own RBAC has the last word, because the request is forwarded in the caller's name: rights that were granted
by hand inside count too. What the bindings grant is known here as well (`granted`); only such reads are answered from
the index. Some requests are refused to every caller, whatever RBAC inside says.
"""

import msgspec

from kairship import access
from kairship.access import Authoriser, Decision, RbacScope, Role, permissions
from kairship.access.catalogue import system_namespaces
from kairship.access.catalogue.attributes import (
    MEMBER_PROXY_PERMISSION,
    Attributes,
    is_closed_in_members,
    permission_for,
)
from kairship.apiserver.auth.authorisation import (
    holder,
    needed,
    no_instance,
    outside_token,
    require_password_changed,
    rights_unknown,
)
from kairship.apiserver.auth.impersonation import person_inside
from kairship.apiserver.proxy.request.request_info import NonResourceRequest, RequestInfo, ResourceRequest
from kairship.apiserver.proxy.request.target import Target
from kairship.kube import Impersonation
from kairship.rpc.calls import Caller
from kairship.rpc.errors import ApiError, PermissionDenied

_MOST_CACHED = 4096
_CLUSTER_SCOPED = frozenset(
    (rule.group, rule.resource)
    for permission in permissions().values()
    for rule in permission.rules
    if not rule.namespaced
)


class Authorisation(msgspec.Struct, frozen=True):
    """Why a request may be forwarded, and as whom."""

    granted: bool
    """Whether bindings grant it. If not, RBAC that was written by hand inside may still allow it."""
    identity: Impersonation
    extent: RbacScope | None = None
    """Of a read: how far the RBAC that the bindings stand for inside is certain to allow it. None means that only the
    instance can tell; then the index does not answer."""
    reserved: bool = True
    """Whether the request may concern reserved namespaces. If not, they are left out of a request over all
    namespaces."""


class ProxyAuthoriser:
    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser
        # A decision takes a dozen lookups. Clients repeat their requests, so what was granted is cached until any
        # binding or instance changes.
        self._granted: dict[tuple[access.Caller, str, bool, Attributes], Authorisation] = {}
        self._version = authoriser.version

    def authorise(self, caller: Caller, target: Target, request_info: RequestInfo) -> Authorisation:
        """Raises `NotFound`, `PermissionDenied`, or `Unavailable` while rights may be out of date."""
        require_password_changed(caller)
        if caller.only_instance and caller.only_instance != target.instance:
            raise no_instance(target.instance)
        who = holder(caller)
        if target.cluster is not None and who.limited_to is not None and MEMBER_PROXY_PERMISSION not in who.limited_to:
            raise outside_token(MEMBER_PROXY_PERMISSION)
        if isinstance(request_info, NonResourceRequest):
            return self._decide(who, target, request_info)
        if self._version != self._authoriser.version or len(self._granted) >= _MOST_CACHED:
            self._granted.clear()
            self._version = self._authoriser.version
        key = (who, target.instance, target.cluster is None, request_info.attributes)
        cached = self._granted.get(key)
        if cached is not None and self._authoriser.is_current:
            return cached
        decided = self._decide(who, target, request_info)
        if decided.granted:
            self._granted[key] = decided
        return decided

    def grants_inside(self, caller: Caller, target: Target, request_info: RequestInfo) -> bool:
        """Whether the RBAC that the bindings stand for inside allows the request, once it has arrived there."""
        who, is_member = holder(caller), target.cluster is not None
        need = permission_for(request_info.attributes) if isinstance(request_info, ResourceRequest) else None
        if isinstance(request_info, ResourceRequest) and isinstance(need, str):
            scope = self._authoriser.rbac_scope_inside(who, target.instance, request_info.attributes, member=is_member)
            return scope is not None
        # Every authenticated user may do these, discovery for example; in a member, every user that may reach it.
        return is_member and bool(self._authoriser.on_part_of_instance(who, MEMBER_PROXY_PERMISSION, target.instance))

    def _decide(self, who: access.Caller, target: Target, request_info: RequestInfo) -> Authorisation:
        if isinstance(request_info, NonResourceRequest):
            verdict = self._authoriser.on_non_resource_path(who, target.instance, request_info.verb, request_info.path)
        else:
            verdict = self._authoriser.on_kubernetes_request(
                who, target.instance, request_info.attributes, member=target.cluster is not None
            )
        if verdict is Decision.HIDDEN:
            raise no_instance(target.instance)
        if verdict is Decision.UNCERTAIN:
            raise rights_unknown()
        if verdict is Decision.FORBIDDEN and (refusal := self._refusal(who, target, request_info)):
            raise refusal
        groups = self._authoriser.groups_on(who, target.instance)
        extent = None
        if verdict and isinstance(request_info, ResourceRequest) and request_info.is_object_read:
            member = target.cluster is not None
            extent = self._authoriser.rbac_scope_inside(who, target.instance, request_info.attributes, member=member)
        reserved = not _may_span_namespaces(request_info) or self._authoriser.sees_reserved(who, target.instance)
        return Authorisation(bool(verdict), person_inside(who.user, groups), extent, reserved)

    def _refusal(self, who: access.Caller, target: Target, request_info: RequestInfo) -> ApiError | None:
        """Why the request is not even forwarded to the instance's RBAC. None if RBAC inside is to decide."""
        if isinstance(request_info, NonResourceRequest):
            return _not_available(target, request_info)
        attributes = request_info.attributes
        need = permission_for(attributes)
        if need is None or (target.cluster is not None and is_closed_in_members(attributes)):
            return _not_available(target, request_info)
        if who.limited_to is not None and need not in who.limited_to:
            return outside_token(str(need), wanted=_wanted(request_info))
        # Nothing that is written inside an instance opens what only administrators of the platform may do.
        if isinstance(need, str) and permissions()[need].role is Role.PLATFORM_ADMIN:
            return needed(need, wanted=_wanted(request_info))
        if not system_namespaces.includes_system_namespaces(attributes):
            return None
        guard = system_namespaces.guard_of(str(need), attributes.path_of_resource, member=target.cluster is not None)
        if self._authoriser.on_instance(who, guard, target.instance):
            return None
        return needed(guard, place="instance", wanted=_wanted(request_info))


def _may_span_namespaces(request_info: RequestInfo) -> bool:
    """Whether the request concerns objects in all namespaces, unless a kind that is not known here has none."""
    if isinstance(request_info, NonResourceRequest) or not request_info.spans_namespaces:
        return False
    return (request_info.attributes.group, request_info.attributes.resource) not in _CLUSTER_SCOPED


def _wanted(request_info: RequestInfo) -> str:
    """The request in words: its verb, kind and namespace."""
    if isinstance(request_info, NonResourceRequest):
        return f"{request_info.verb} {request_info.path}"
    attributes = request_info.attributes
    kind = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    part = f"/{attributes.subresource}" if attributes.subresource else ""
    where = f" in namespace {attributes.namespace}" if attributes.namespace else ""
    return f"{attributes.verb} {kind}{part}{where}"


def _not_available(target: Target, request_info: RequestInfo) -> PermissionDenied:
    """For what no permission of the plane opens: through it a caller could become another user or reach other hosts."""
    server = f"instance {target.instance}" if target.cluster is None else f"cluster {target.cluster}"
    return PermissionDenied(
        f"{_wanted(request_info)} is not available through the plane, and no role grants it; "
        f"the operator of {server} can do it with a kubeconfig of that API server itself"
    )
