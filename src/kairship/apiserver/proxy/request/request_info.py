"""A request as Kubernetes' own authorisers see it: a verb on a resource, or a verb on a path that names no resource.

The rules are those of kube-apiserver's `RequestInfoFactory`.
"""

from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from kairship.access.catalogue.attributes import Attributes

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_COLLECTION_VERBS = frozenset({"list", "watch", "deletecollection"})
# Old paths such as /api/v1/watch/pods name a verb. No current client uses them. They count as paths that name no
# resource, of which only those of discovery are open.
_VERBS_IN_PATHS = frozenset({"watch", "proxy"})
_FALSE = frozenset({"false", "0"})


class ResourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for one resource, a collection of it, or a subresource."""

    attributes: Attributes
    version: str
    name: str
    """Empty for a collection."""

    @property
    def is_watch(self) -> bool:
        return self.attributes.verb == "watch"

    @property
    def is_write(self) -> bool:
        """Whether the verb is a writing one. `create` on a subresource may still write nothing, as exec does."""
        return self.attributes.verb in _WRITE_VERBS

    @property
    def spans_namespaces(self) -> bool:
        """Whether it concerns the objects of all namespaces, if the kind is a namespaced one."""
        return self.attributes.verb in _COLLECTION_VERBS and not self.attributes.namespace

    @property
    def is_object_read(self) -> bool:
        """Whether it reads whole objects, which the index may have."""
        return self.attributes.verb in {"get", "list", "watch"} and not self.attributes.subresource


class NonResourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a path that names no resource: discovery, health and the like."""

    verb: str
    path: str


RequestInfo: TypeAlias = ResourceRequest | NonResourceRequest


def is_set(parameters: Mapping[str, str], name: str) -> bool:
    """Whether a boolean query parameter is true, as Kubernetes reads it: it is present and its value is not false."""
    value = parameters.get(name)
    return value is not None and value.lower() not in _FALSE


def parse_request_info(method: str, path: str, parameters: Mapping[str, str]) -> RequestInfo:
    """`path` is still percent-encoded, and unambiguous (see `target`)."""
    verb = _VERBS.get(method, method.lower())
    match [unquote(segment) for segment in path.split("/") if segment]:
        case ["api", version, *segments] if segments and segments[0] not in _VERBS_IN_PATHS:
            group = ""
        case ["apis", group, version, *segments] if segments and segments[0] not in _VERBS_IN_PATHS:
            pass
        case _:
            return NonResourceRequest(verb=verb, path=path)
    namespace, resource, name, subresource = _split_resource_path(segments)
    if not name:
        if verb == "get":
            verb = "watch" if is_set(parameters, "watch") else "list"
        elif verb == "delete":
            verb = "deletecollection"
    attributes = Attributes(verb=verb, group=group, resource=resource, subresource=subresource, namespace=namespace)
    return ResourceRequest(attributes=attributes, version=version, name=name)


def _split_resource_path(segments: list[str]) -> tuple[str, str, str, str]:
    """Namespace, resource, name and subresource. What follows a subresource belongs to it, as in `proxy/…`."""
    namespace = ""
    match segments:
        case ["namespaces", namespace, part, *_] if part not in _NAMESPACE_SUBRESOURCES:
            segments = segments[2:]
        case ["namespaces", namespace, *_]:
            pass
    resource, name, subresource = (*segments[:3], "", "")[:3]
    return namespace, resource, name, subresource
