"""Grant scopes: where a right holds, and where a request happens.

A scope names its level beside its identifiers, so an instance and a workspace of the same identifier are never equal.
Scopes are plain tuples, because several are made for every decision.
"""

from typing import Literal, TypeAlias

from kairship.resources import ScopeLevel
from kairship.resources.access_binding import Scope

GrantScope: TypeAlias = tuple[Literal["platform", "workspace", "instance", "namespace", "cluster"], str, str]

PLATFORM: GrantScope = ("platform", "", "")


def workspace(identifier: str) -> GrantScope:
    """A workspace as an object of global management: it covers its members, not the resources that it holds."""
    return ("workspace", identifier, "")


def instance(uid: str) -> GrantScope:
    """An instance by its UID, so that rights do not pass on to a later instance of the same name."""
    return ("instance", uid, "")


def namespace(instance_uid: str, name: str) -> GrantScope:
    return ("namespace", instance_uid, name)


def cluster(uid: str) -> GrantScope:
    """A cluster of container management by its UID."""
    return ("cluster", uid, "")


def instance_of(scope: GrantScope) -> str | None:
    """The UID of the instance that a scope is, or lies in."""
    return scope[1] if scope[0] in {"instance", "namespace"} else None


def grant_scope_of(scope: Scope) -> GrantScope | None:
    """The scope of a binding's spec. None if it is incomplete or its level is unknown here: then it grants nothing."""
    match scope.level:
        case ScopeLevel.PLATFORM:
            return PLATFORM
        case ScopeLevel.WORKSPACE if scope.workspace:
            return workspace(scope.workspace)
        case ScopeLevel.INSTANCE if scope.instance_uid:
            return instance(scope.instance_uid)
        case ScopeLevel.NAMESPACE if scope.instance_uid and scope.namespace:
            return namespace(scope.instance_uid, scope.namespace)
        case ScopeLevel.CLUSTER if scope.cluster_uid:
            return cluster(scope.cluster_uid)
        case _:
            return None
