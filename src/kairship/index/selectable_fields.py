"""The fields that a field selector may name, kind by kind: those that the kube-apiserver accepts, and no others.

Every kind takes `metadata.name`, and namespaced kinds take `metadata.namespace`; these two are columns. The other
fields are read from each object when its record is made, with a struct that decodes these fields alone. Custom
resources declare their fields themselves, as `selectableFields` of their definition.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from kairship.kube import Resource

_EVENT = (
    *(f"involvedObject.{part}" for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")),
    *("involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"),
)
_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "pods": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
        *("status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "events": _EVENT,
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
}
# The value that an absent field has. Go has no absent numbers and booleans.
_ABSENT = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
# Fields whose name in a selector is not their path in the object.
_PATHS = {"status.successful": "status.succeeded", "source": "source.component"}


class _Fields(msgspec.Struct):
    """The base of the structs that are made for each kind."""


def kind_name(resource: Resource) -> str:
    """The name of a kind throughout the index, which is that of its GroupResource: `pods`, `deployments.apps`.

    The index has one version of each.
    """
    return kind_called(resource.plural, resource.group)


def kind_called(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def selectable(kind: str, declared: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The selectable fields of a kind beside its metadata. `declared` are those of a custom resource."""
    return _BY_KIND.get(kind, declared)


def read_fields(body: bytes | msgspec.Raw, paths: tuple[str, ...]) -> dict[str, str]:
    """Each field as the text that a selector compares. Raises `msgspec.DecodeError` if `body` is not an object."""
    found = _decoder(paths).decode(body)
    return {path: _text(path, found) for path in paths}


@lru_cache(maxsize=1024)
def _decoder(paths: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    tree: dict[str, Any] = {}
    for path in paths:
        branch = tree
        for part in _PATHS.get(path, path).split("."):
            branch = branch.setdefault(part, {})
    return msgspec.json.Decoder(_shape(tree))


def _shape(tree: dict[str, Any]) -> Any:
    if not tree:
        return Any
    fields = [
        (f"f{number}", _shape(branch) | None if branch else Any, None) for number, branch in enumerate(tree.values())
    ]
    rename = {f"f{number}": name for number, name in enumerate(tree)}
    return msgspec.defstruct("Fields", fields, bases=(_Fields,), rename=rename)


def _text(path: str, found: Any) -> str:
    for part in _PATHS.get(path, path).split("."):
        if found is None:
            break
        names = type(found).__struct_encode_fields__
        found = getattr(found, f"f{names.index(part)}")
    match found:
        case None:
            return _ABSENT.get(path, "")
        case bool():
            return "true" if found else "false"
        case str() | int() | float():
            return str(found)
        case _:
            return ""
