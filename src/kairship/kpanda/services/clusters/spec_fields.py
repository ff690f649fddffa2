"""Makes fields of the custom resource of what a request says about a cluster. Pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import ClusterSpec
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint
from kairship.rpc.errors import InvalidArgument

_OURS = ("kairship.io", "kpanda.io", "karmada.io")


def spec_fields(spec: ClusterSpec, *, whole: bool = False) -> dict[str, Any]:
    """The fields that are set. With `whole`, for a merge patch, the others are null, so that they are removed."""
    fields: dict[str, Any] = {
        "alias": spec.alias,
        "provider": spec.provider,
        "region": spec.region,
        "zones": list(spec.zones),
        "roles": list(spec.roles),
        "managedBy": spec.managed_by,
        "endpoint": spec.endpoint.rstrip("/"),
        "taints": taint_fields(spec.taints),
    }
    return {name: value or None for name, value in fields.items() if whole or value}


def taint_fields(taints: Iterable[Taint], *, field: str = "spec.taints") -> list[dict[str, str]]:
    wanted: dict[tuple[str, str], dict[str, str]] = {}
    for taint in taints:
        if (taint.key, taint.effect.name) in wanted:
            raise InvalidArgument(violations=[(field, f"{taint.key} with {taint.effect.name} is given twice")])
        value = {"value": taint.value} if taint.value else {}
        wanted[taint.key, taint.effect.name] = {"key": taint.key, **value, "effect": taint.effect.name}
    return list(wanted.values())


def label_changes(to_set: Mapping[str, str], to_remove: Iterable[str]) -> dict[str, str | None]:
    """The merge patch of labels. Refuses a label that is to be set and removed at once."""
    removed = set(to_remove)
    if both := sorted(removed & set(to_set)):
        raise InvalidArgument(violations=[("remove", f"{both[0]} is to be set as well: choose one")])
    return {**dict.fromkeys(removed), **to_set}


def refuse_own_labels(labels: Iterable[str], *, field: str) -> None:
    """Refuses labels in the domains of the plane and of Karmada, which set them themselves."""
    for key in labels:
        domain = key.rpartition("/")[0]
        if any(domain == each or domain.endswith(f".{each}") for each in _OURS):
            raise InvalidArgument(violations=[(field, f"{key}: labels of {domain} are set by the platform itself")])
