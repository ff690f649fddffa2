"""A request as Kubernetes' own authorisers see it: a verb on a resource, or on a path that is about none."""

from collections.abc import Mapping
from urllib.parse import unquote

import msgspec

from kairship.access.proxy import Attributes

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_A_NAMESPACE = frozenset({"status", "finalize"})
_CHANGING = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_NOT_SET = frozenset({"false", "0"})


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Of one resource."""

    attributes: Attributes
    version: str
    name: str
    """Empty for a collection."""

    @property
    def watches(self) -> bool:
        return self.attributes.verb == "watch"

    @property
    def changes(self) -> bool:
        """Whether its verb is one that changes something; what a subresource makes of it is another matter."""
        return self.attributes.verb in _CHANGING

    @property
    def reads(self) -> bool:
        """Whether the index might know the answer."""
        return self.attributes.verb in {"get", "list", "watch"} and not self.attributes.subresource


class AskedPath(msgspec.Struct, frozen=True, kw_only=True):
    """Of no resource: discovery, health and the like."""

    verb: str
    path: str


def is_set(parameters: Mapping[str, str], name: str) -> bool:
    """A flag in a query, as Kubernetes reads it: present, and not said to be false."""
    value = parameters.get(name)
    return value is not None and value not in _NOT_SET


def asked(method: str, path: str, parameters: Mapping[str, str]) -> Asked | AskedPath:
    """`path` is encoded, and plain (see `target`)."""
    verb = _VERBS.get(method, method.lower())
    segments = [unquote(segment) for segment in path.split("/") if segment]
    match segments:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return AskedPath(verb=verb, path=path)
    namespace, resource, name, subresource = _place(rest)
    if resource is None:
        return AskedPath(verb=verb, path=path)
    if not name:
        if verb == "get":
            verb = "watch" if is_set(parameters, "watch") else "list"
        elif verb == "delete":
            verb = "deletecollection"
    attributes = Attributes(verb=verb, group=group, resource=resource, subresource=subresource, namespace=namespace)
    return Asked(attributes=attributes, version=version, name=name)


def _place(rest: list[str]) -> tuple[str, str | None, str, str]:
    """Namespace, resource, name and subresource. What follows a subresource is a matter of that: `proxy/…`."""
    match rest:
        case ["namespaces"]:
            return "", "namespaces", "", ""
        case ["namespaces", name]:
            return name, "namespaces", name, ""
        case ["namespaces", name, part] if part in _OF_A_NAMESPACE:
            return name, "namespaces", name, part
        case ["namespaces", namespace, resource]:
            return namespace, resource, "", ""
        case ["namespaces", namespace, resource, name, *deeper]:
            return namespace, resource, name, deeper[0] if deeper else ""
        case ["watch" | "proxy", *_]:
            # Old forms of watching and proxying, which no client of today uses.
            return "", None, "", ""
        case [resource]:
            return "", resource, "", ""
        case [resource, name, *deeper]:
            return "", resource, name, deeper[0] if deeper else ""
        case _:
            return "", None, "", ""
