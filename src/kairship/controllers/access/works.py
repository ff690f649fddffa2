"""Our objects on their way into a member: one Work for each object and cluster, as Karmada makes them itself. Pure.

Four things make Karmada keep such an object, heal it and remove it in the end: its finalizer on the Work, its label and
its two annotations on the object, and the name that Karmada itself would give the Work.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kairship.controllers.access.desired import Content, Place, manifest
from kairship.controllers.inside import ACCESS_LABEL
from kairship.instances.membership import execution_namespace

FINALIZER = "karmada.io/execution-controller"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@functools.lru_cache(maxsize=65536)
def work_name(place: Place) -> str:
    """The name that Karmada finds the Work of an object by."""
    name = place.name.replace(":", ".").lower()
    parts = (place.namespace, name, place.kind) if place.namespace else (name, place.kind)
    return f"{name}-{_encoded('-'.join(parts).lower())}"


def object_in_member(cluster: str, place: Place, content: Content) -> dict[str, Any]:
    """Our object with the marks by which Karmada recognises it."""
    wanted = manifest(place, content)
    wanted["metadata"]["labels"]["karmada.io/managed"] = "true"
    wanted["metadata"]["annotations"] = _marks(cluster, place)
    return wanted


def work(cluster: str, place: Place, content: Content) -> dict[str, Any]:
    return {
        "metadata": {
            "name": work_name(place),
            "namespace": execution_namespace(cluster),
            "labels": {ACCESS_LABEL: "true"},
            "finalizers": [FINALIZER],
        },
        "spec": {"workload": {"manifests": [object_in_member(cluster, place, content)]}},
    }


def is_as(found: Mapping[str, Any], cluster: str, place: Place, content: Content) -> bool:
    """Whether an object, or the manifest of one, is as it should be. Karmada adds labels and annotations of its own."""
    metadata = found.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return (
        (found.get("kind"), metadata.get("namespace", ""), metadata.get("name")) == msgspec.structs.astuple(place)
        and all((found.get(field) or None) == content.get(field) for field in ("rules", "roleRef", "subjects"))
        and labels.get(ACCESS_LABEL) == labels.get("karmada.io/managed") == "true"
        and annotations.items() >= _marks(cluster, place).items()
    )


def _marks(cluster: str, place: Place) -> dict[str, str]:
    return {
        "work.karmada.io/name": work_name(place),
        "work.karmada.io/namespace": execution_namespace(cluster),
        # What has our name is ours, also when somebody was there first.
        "work.karmada.io/conflict-resolution": "overwrite",
    }


def _encoded(text: str) -> str:
    return "".join(_digits(str(_fnv32a(text.encode()))))


def _digits(number: str) -> Iterator[str]:
    """Without vowels and look-alikes, so that no word comes out by chance."""
    for digit in number:
        yield _ALPHABET[ord(digit) % len(_ALPHABET)]


def _fnv32a(content: bytes) -> int:
    found = 0x811C9DC5
    for byte in content:
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return found
