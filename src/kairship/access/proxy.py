"""What somebody needs for a request of Kubernetes itself: the native proxy asks here.

A path is judged by its parsed form and nothing is guessed: whatever is not understood is nobody's.
"""

import enum
from collections.abc import Mapping

import msgspec

from kairship.access.kinds import BY_RESOURCE, is_custom
from kairship.access.rules import READ, VERBS
from kairship.access.table import permissions


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """A request as Kubernetes' own authorisers see it."""

    verb: str
    """get, list, watch, create, update, patch, delete or deletecollection."""
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    """Empty for a kind without namespaces, and for a request over all of them."""


class Everyone(enum.Enum):
    """What needs no permission of its own, only some right on the instance."""

    WITH_ANY_RIGHT = "anybody who has any right on the instance"


TO_MEMBERS = "kairship.clusters.proxy"
"""What it takes to reach into the member clusters of an instance, beside the rights on what is there."""

_SELF_REVIEWS = frozenset(
    {
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    }
)
_DISCOVERY = ("/api", "/apis", "/openapi/v2", "/openapi/v3", "/version")
_ACTION = {verb: action for action, verbs in VERBS.items() for verb in verbs}


def _special() -> Mapping[tuple[str, str, str], str]:
    """Permissions of rules that are not the usual actions on a kind, by group, resource (and part of it) and verb."""
    return {
        (rule.group, rule.resource, verb): permission.name
        for permission in permissions().values()
        for rule in permission.rules
        for verb in rule.verbs
        if not rule.names_clusters
    }


_BY_RULE = _special()


def permission_for(request: Attributes) -> str | Everyone | None:
    """The permission that a request needs; None if nobody may make it through the plane."""
    if (request.group, request.resource) in _SELF_REVIEWS:
        return Everyone.WITH_ANY_RIGHT if request.verb == "create" and not request.subresource else None
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    found = _BY_RULE.get((request.group, resource, request.verb))
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


def permission_to_find(group: str, resource: str) -> str | None:
    """The permission to find objects of a kind in the index, which knows of Secrets only that they are there."""
    if (group, resource) == ("", "secrets"):
        return "kairship.secrets.get"
    found = permission_for(Attributes(verb="list", group=group, resource=resource))
    return found if isinstance(found, str) else None


def permission_for_path(verb: str, path: str) -> Everyone | None:
    """The same for a path that is about no resource: discovery, and nothing of the server's inner life."""
    known = any(path == each or path.startswith(f"{each}/") for each in _DISCOVERY)
    return Everyone.WITH_ANY_RIGHT if verb == "get" and known else None
