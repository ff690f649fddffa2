"""The Works by which Karmada brings our RBAC objects into a member: one for each object and cluster. Pure functions.

Four things make Karmada keep such an object, repair it and remove it in the end: its finalizer on the Work, its label
and its two annotations on the object, and the name that Karmada itself would give the Work.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kairship.controllers.access.desired import Content, ObjectKey, manifest
from kairship.controllers.instance_cache import ACCESS_LABEL
from kairship.instances.membership import execution_namespace

FINALIZER = "karmada.io/execution-controller"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@functools.lru_cache(maxsize=65536)
def work_name(key: ObjectKey) -> str:
    """The name by which Karmada finds the Work of an object."""
    name = key.name.replace(":", ".").lower()
    parts = (key.namespace, name, key.kind) if key.namespace else (name, key.kind)
    return f"{name}-{_encoded('-'.join(parts).lower())}"


def object_in_member(cluster: str, key: ObjectKey, content: Content) -> dict[str, Any]:
    """Our object with the label and annotations by which Karmada recognises it."""
    wanted = manifest(key, content)
    wanted["metadata"]["labels"]["karmada.io/managed"] = "true"
    wanted["metadata"]["annotations"] = _annotations(cluster, key)
    return wanted


def work(cluster: str, key: ObjectKey, content: Content) -> dict[str, Any]:
    return {
        "metadata": {
            "name": work_name(key),
            "namespace": execution_namespace(cluster),
            "labels": {ACCESS_LABEL: "true"},
            "finalizers": [FINALIZER],
        },
        "spec": {"workload": {"manifests": [object_in_member(cluster, key, content)]}},
    }


def matches(found: Mapping[str, Any], cluster: str, key: ObjectKey, content: Content) -> bool:
    """Whether an object or a manifest is as desired. Karmada adds labels and annotations of its own."""
    metadata = found.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return (
        (found.get("kind"), metadata.get("namespace", ""), metadata.get("name")) == msgspec.structs.astuple(key)
        and all((found.get(field) or None) == content.get(field) for field in ("rules", "roleRef", "subjects"))
        and labels.get(ACCESS_LABEL) == labels.get("karmada.io/managed") == "true"
        and annotations.items() >= _annotations(cluster, key).items()
    )


def _annotations(cluster: str, key: ObjectKey) -> dict[str, str]:
    return {
        "work.karmada.io/name": work_name(key),
        "work.karmada.io/namespace": execution_namespace(cluster),
        # An object with our name is ours, also when it existed before.
        "work.karmada.io/conflict-resolution": "overwrite",
    }


def _encoded(text: str) -> str:
    return "".join(_digits(str(_fnv32a(text.encode()))))


def _digits(number: str) -> Iterator[str]:
    """Encodes digits in the alphabet of Kubernetes, which has no vowels and no look-alikes."""
    for digit in number:
        yield _ALPHABET[ord(digit) % len(_ALPHABET)]


def _fnv32a(content: bytes) -> int:
    found = 0x811C9DC5
    for byte in content:
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return found
