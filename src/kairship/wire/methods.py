"""The methods of the API with their options: REST routes, permission and scope.

They are read once from the descriptors. The REST transcoder, the gRPC server, the authoriser and the catalogue of
permissions all use them.
"""

import functools
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

from protobuf import DescMessage, DescMethod, Message
from protobuf.wkt.google.protobuf.descriptor_pb import MethodOptions

from kairship.gen.google.api.annotations_pb import ext_http
from kairship.gen.google.api.http_pb import HttpRule
from kairship.gen.kairship.api.v1.access_pb import Scope, ext_filtered, ext_names, ext_permission, ext_scope, ext_strict
from kairship.gen.kairship.api.v1.download_pb import ext_download
from kairship.gen.kairship.ghippo.v1alpha1 import (
    audit_pb,
    binding_pb,
    current_user_pb,
    folder_pb,
    group_pb,
    identity_provider_pb,
    rights_pb,
    role_pb,
    session_pb,
    user_pb,
    webhook_pb,
)
from kairship.gen.kairship.ghippo.v1alpha1 import workspace_pb as ghippo_workspace_pb
from kairship.gen.kairship.internal.v1 import audit_pb as internal_audit_pb
from kairship.gen.kairship.internal.v1 import directory_pb
from kairship.gen.kairship.kpanda.v1alpha1 import collector_pb, history_pb, node_pb, registry_pb, search_pb
from kairship.gen.kairship.v1alpha1 import (
    aggregation_pb,
    apiextensions_pb,
    apps_pb,
    autoscaling_pb,
    batch_pb,
    cloudshell_pb,
    cluster_pb,
    core_pb,
    image_pb,
    insight_pb,
    instance_pb,
    networking_pb,
    policy_pb,
    workspace_pb,
)

SERVICE_FILES = (
    instance_pb,
    cluster_pb,
    apps_pb,
    batch_pb,
    core_pb,
    networking_pb,
    policy_pb,
    autoscaling_pb,
    apiextensions_pb,
    aggregation_pb,
    cloudshell_pb,
    workspace_pb,
    image_pb,
    insight_pb,
    registry_pb,
    node_pb,
    search_pb,
    history_pb,
    collector_pb,
    session_pb,
    current_user_pb,
    rights_pb,
    user_pb,
    group_pb,
    role_pb,
    binding_pb,
    ghippo_workspace_pb,
    folder_pb,
    webhook_pb,
    identity_provider_pb,
    audit_pb,
)

INTERNAL_FILES: tuple[ModuleType, ...] = (directory_pb, internal_audit_pb)
"""Services that only the plane's own processes call. They have no route and no permission, and are in no document."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """The REST route of a method."""

    verb: str
    """GET, POST, PUT, PATCH or DELETE."""
    template: str
    """The path. `{field}` stands for a field of the request, and may be followed by `:action`."""
    body: str
    """The field of the request that the body contains; `*` for the whole request, empty for no body."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """A method whose replies are the pieces of one file over REST."""

    media_type: str
    file_name: str
    field: str
    """The field of a reply that has a piece of the file."""

    def piece(self, reply: Message[Any]) -> bytes:
        found: str | bytes = getattr(reply, self.field)
        return found.encode() if isinstance(found, str) else found


@dataclass(frozen=True, kw_only=True)
class Method:
    service: str
    """The name of the service without its package, as in the OpenAPI document: Instance, Apps …"""
    name: str
    path: str
    """The gRPC path: /kairship.v1alpha1.Instance/GetInstance."""
    request: type[Message[Any]]
    reply: type[Message[Any]]
    streams: bool
    """Whether the method streams replies."""
    routes: tuple[Route, ...]
    permission: str
    scope: Scope
    instance: str | None
    """The field of the request that names the instance; None if the scope is the platform."""
    namespace: str | None
    """The field of the request that names the namespace; None unless the scope is a namespace."""
    workspace: str | None
    """The field of the request that names the workspace; None unless the scope is a workspace."""
    filtered: bool
    """Whether it is enough to hold the permission on a part of the scope. The reply then contains only such parts."""
    strict: bool
    """Whether unknown JSON fields of the request are refused instead of causing a warning."""
    download: Download | None = None
    """Set if the replies are the pieces of one file."""


@functools.cache
def methods() -> Mapping[str, Method]:
    """All methods by their gRPC path, in the order of the protos."""
    found = (
        _method(method) for file in SERVICE_FILES for service in file.desc().services for method in service.methods
    )
    return MappingProxyType({method.path: method for method in found})


@functools.cache
def internal_methods() -> Mapping[str, Method]:
    """The methods that only the plane's own processes call, by gRPC path. The server decides which process may."""
    found = (
        _method(method, internal=True)
        for file in INTERNAL_FILES
        for service in file.desc().services
        for method in service.methods
    )
    return MappingProxyType({method.path: method for method in found})


@functools.cache
def descriptors() -> bytes:
    """A serialized FileDescriptorSet of all protos and their imports, which gRPC reflection serves."""
    return importlib.resources.files("kairship.gen").joinpath("descriptors.binpb").read_bytes()


def _method(method: DescMethod, *, internal: bool = False) -> Method:
    options = method.proto.options or MethodOptions()
    if method.proto.options is None and not internal:
        raise ValueError(f"{method} has no options: it needs a route, a permission and a scope")
    scope = options[ext_scope]
    in_instance = scope in (Scope.INSTANCE, Scope.NAMESPACE)
    return Method(
        service=method.parent.name,
        name=method.name,
        path=f"/{method.parent.type_name}/{method.name}",
        request=method.input.type,
        reply=method.output.type,
        streams=method.method_kind == "server_streaming",
        routes=() if internal else _routes(options[ext_http]),
        permission=options[ext_permission],
        scope=scope,
        instance=_scope_field(method.input, Scope.INSTANCE, "instance") if in_instance else None,
        namespace=_scope_field(method.input, Scope.NAMESPACE, "namespace") if scope is Scope.NAMESPACE else None,
        workspace=_scope_field(method.input, Scope.WORKSPACE, "workspace") if scope is Scope.WORKSPACE else None,
        filtered=options[ext_filtered],
        strict=options[ext_strict],
        download=_download(options, method),
    )


def _download(options: MethodOptions, method: DescMethod) -> Download | None:
    found = options[ext_download]
    if found is None or not found.media_type:
        return None
    (field,) = method.output.fields
    return Download(media_type=found.media_type, file_name=found.file_name, field=field.local_name)


def _scope_field(request: DescMessage, scope: Scope, usual: str) -> str:
    """The field of a request that names the object of its scope."""
    for field in request.fields:
        options = field.proto.options
        if options is not None and options[ext_names] is scope:
            return field.local_name
    for field in request.fields:
        if field.name == usual:
            return field.local_name
    raise ValueError(f"{request} has a scope but no field {usual}, and no field is marked with `names`")


def _routes(rule: HttpRule) -> tuple[Route, ...]:
    if rule.pattern is None or not isinstance(rule.pattern.value, str):
        raise ValueError(f"a route must have one of the verbs of HTTP: {rule}")
    route = Route(verb=rule.pattern.field.upper(), template=rule.pattern.value, body=rule.body)
    return (route, *(other for binding in rule.additional_bindings for other in _routes(binding)))
