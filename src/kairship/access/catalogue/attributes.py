"""The permission that a request to a Kubernetes API needs. The native proxy authorises requests by it.

A request is judged by its parsed form and nothing is guessed: a request that is not understood is refused.
"""

import enum
import re
from collections.abc import Mapping

import msgspec

from kairship.access.catalogue.kinds import BY_RESOURCE, WITH_SECRETS, is_custom
from kairship.access.catalogue.markers import is_marker
from kairship.access.catalogue.rules import READ, VERBS
from kairship.access.catalogue.table import permissions


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a request, as an authorizer of Kubernetes gets them."""

    verb: str
    """get, list, watch, create, update, patch, delete or deletecollection."""
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    """Empty for a cluster-scoped kind, and for a request over all namespaces."""

    @property
    def path_of_resource(self) -> str:
        """The resource as RBAC names it, with its subresource: pods/log."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class AnyRight(enum.Enum):
    """Stands for a permission where a request needs none of its own, but any right on the instance."""

    ON_INSTANCE = "any right on the instance"


MEMBER_PROXY_PERMISSION = "kairship.clusters.proxy"
"""Needed for every request to a member cluster of an instance, beside the permission on the object itself."""

_SELF_REVIEWS = frozenset(
    {
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    }
)
# The paths of discovery, and no others: below a version are objects.
_DISCOVERY = re.compile(r"/(?:api(?:/[^/]+)?|apis(?:/[^/]+){0,2}|openapi/v2|openapi/v3(?:/[^/]+){0,4}|version)/?")
_ACTION = {verb: action for action, verbs in VERBS.items() for verb in verbs}


def _permissions_by_rule() -> Mapping[tuple[str, str, str], str]:
    """The names of permissions by API group, resource (with its subresource) and verb of their rules."""
    return {
        (rule.group, rule.resource, verb): permission.name
        for permission in permissions().values()
        for rule in permission.rules
        for verb in rule.verbs
        if not rule.names_clusters and not is_marker(verb)
    }


_BY_RULE = _permissions_by_rule()


def permission_for(request: Attributes) -> str | AnyRight | None:
    """The permission that a request needs; None if no caller may make it through the plane."""
    if (request.group, request.resource) in _SELF_REVIEWS:
        return AnyRight.ON_INSTANCE if request.verb == "create" and not request.subresource else None
    found = _BY_RULE.get((request.group, request.path_of_resource, request.verb))
    if found is not None:
        return found
    if not is_custom(request.group) or (request.group, request.resource) in BY_RESOURCE:
        return None
    if request.subresource not in {"", "status", "scale"}:
        return None
    if request.subresource == "status" and request.verb not in READ:
        return None
    action = _ACTION.get(request.verb)
    return f"kairship.customresources.{action}" if action else None


def is_closed_in_members(request: Attributes) -> bool:
    """Whether no caller may make the request to a member through the plane, whatever it needs in an instance."""
    kind = BY_RESOURCE.get((request.group, request.resource))
    return kind is not None and kind.is_read_only_in_members and request.verb not in READ


def is_about_secret_data(request: Attributes) -> bool:
    """Whether the request is about objects that contain secret data."""
    return (request.group, request.resource) in WITH_SECRETS


def permission_to_search(group: str, resource: str) -> str | None:
    """The permission to search for objects of a kind in the index; None if nobody may find them there."""
    if (group, resource) == ("", "secrets"):
        return "kairship.secrets.get"
    if (group, resource) in WITH_SECRETS:
        return None
    found = permission_for(Attributes(verb="list", group=group, resource=resource))
    return found if isinstance(found, str) else None


def permission_for_non_resource_path(verb: str, path: str) -> AnyRight | None:
    """The same for a non-resource path: discovery is open; health, metrics and logs of the API server are not."""
    return AnyRight.ON_INSTANCE if verb == "get" and _DISCOVERY.fullmatch(path) else None
