"""Where a right can hold, and where a request happens.

A place says what it is beside its identifiers: an instance and a workspace of the same identifier are never equal.
Plain tuples, because several are made for every decision.
"""

from typing import Literal, TypeAlias

from kairship.resources import ScopeLevel
from kairship.resources.access_binding import Scope

Place: TypeAlias = tuple[Literal["platform", "workspace", "instance", "namespace"], str, str]

PLATFORM: Place = ("platform", "", "")


def workspace(identifier: str) -> Place:
    """A workspace of global management itself: its members, not what it holds."""
    return ("workspace", identifier, "")


def instance(uid: str) -> Place:
    """An instance by its UID: rights do not pass on to a later one of the same name."""
    return ("instance", uid, "")


def namespace(instance_uid: str, name: str) -> Place:
    return ("namespace", instance_uid, name)


def instance_of(place: Place) -> str | None:
    """The UID of the instance that a place is, or is in."""
    return place[1] if place[0] in {"instance", "namespace"} else None


def place_of(scope: Scope) -> Place | None:
    """None for a scope that is not whole, or of a level that this version does not know: it grants nothing."""
    match scope.level:
        case ScopeLevel.PLATFORM:
            return PLATFORM
        case ScopeLevel.WORKSPACE if scope.workspace:
            return workspace(scope.workspace)
        case ScopeLevel.INSTANCE if scope.instance_uid:
            return instance(scope.instance_uid)
        case ScopeLevel.NAMESPACE if scope.instance_uid and scope.namespace:
            return namespace(scope.instance_uid, scope.namespace)
        case _:
            return None
