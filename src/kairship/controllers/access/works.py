"""Our objects on their way into a member: one Work for each object and cluster, as Karmada makes them itself. Pure.

Four things make Karmada keep such an object, heal it and remove it in the end: its finalizer on the Work, its label and
its two annotations on the object, and the name that Karmada itself would give the Work.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kairship.controllers.access.desired import Content, Place, manifest
from kairship.controllers.inside import ACCESS_LABEL

FINALIZER = "karmada.io/execution-controller"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def execution_namespace(cluster: str) -> str:
    """Where Karmada keeps the Works of a member."""
    return f"karmada-es-{cluster}"


def cluster_of(namespace: str) -> str:
    return namespace.removeprefix(execution_namespace(""))


def work_name(place: Place) -> str:
    """The name that Karmada finds the Work of an object by."""
    name = place.name.replace(":", ".").lower()
    parts = (place.namespace, name, place.kind) if place.namespace else (name, place.kind)
    return f"{name}-{_encoded('-'.join(parts).lower())}"


def work(cluster: str, place: Place, content: Content) -> dict[str, Any]:
    name, namespace = work_name(place), execution_namespace(cluster)
    wanted = manifest(place, content)
    wanted["metadata"]["labels"]["karmada.io/managed"] = "true"
    wanted["metadata"]["annotations"] = {
        "work.karmada.io/name": name,
        "work.karmada.io/namespace": namespace,
        # What has our name is ours, also when somebody was there first.
        "work.karmada.io/conflict-resolution": "overwrite",
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {ACCESS_LABEL: "true"},
            "finalizers": [FINALIZER],
        },
        "spec": {"workload": {"manifests": [wanted]}},
    }


def carries(found: list[dict[str, Any]] | None, wanted: Mapping[str, Any]) -> bool:
    """Whether a Work that exists has what one should have. Karmada adds labels and annotations of its own."""
    manifests = wanted["spec"]["workload"]["manifests"]
    return (
        found is not None
        and len(found) == len(manifests)
        and all(_contains(actual, expected) for actual, expected in zip(found, manifests, strict=True))
    )


def _contains(actual: Any, expected: Any) -> bool:
    for path in ("apiVersion", "kind", "rules", "roleRef", "subjects"):
        if actual.get(path) != expected.get(path):
            return False
    metadata, wanted = actual.get("metadata", {}), expected["metadata"]
    if (metadata.get("name"), metadata.get("namespace")) != (wanted["name"], wanted.get("namespace")):
        return False
    return all((metadata.get(kind) or {}).items() >= wanted[kind].items() for kind in ("labels", "annotations"))


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
