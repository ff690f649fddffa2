"""Changes to labels and taints of a cluster that leave alone those that Karmada and Kairship set. Pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any

from kairship.apiserver.services.cluster.view import is_set_by_karmada
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.kube import Object
from kairship.rpc.errors import InvalidArgument

_SYSTEM_DOMAINS = ("karmada.io", "kairship.io", "kpanda.io")


def check_taints(taints: Iterable[Taint]) -> list[Object]:
    """Returns the taints that a caller sent, as Kubernetes writes them, without those that Karmada sets by itself."""
    wanted: dict[tuple[str, TaintEffect], Object] = {}
    for index, taint in enumerate(taints):
        if not taint.key:
            raise InvalidArgument(violations=[(f"cluster.spec.taints[{index}].key", "a taint needs a key")])
        if taint.effect is TaintEffect.UNSPECIFIED:
            raise InvalidArgument(
                violations=[(f"cluster.spec.taints[{index}].effect", "must be NoSchedule or NoExecute")]
            )
        if (taint.key, taint.effect) in wanted:
            raise InvalidArgument(violations=[(f"cluster.spec.taints[{index}]", "repeats a key and effect")])
        if not is_set_by_karmada(taint):
            value = {"value": taint.value} if taint.value else {}
            wanted[taint.key, taint.effect] = {"key": taint.key, **value, "effect": taint.effect.name}
    return list(wanted.values())


def label_patch(current: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """Returns the merge patch that replaces the current labels by the wanted ones and leaves system labels alone."""
    removed = {key: None for key in current if key not in wanted and not _is_system(key)}
    return {**removed, **{key: value for key, value in wanted.items() if not _is_system(key)}}


def karmada_taints(current: Iterable[Mapping[str, Any]], wanted: Iterable[Object]) -> list[Mapping[str, Any]]:
    """Returns the new taints of a Karmada cluster. Those that Karmada sets stay, and so do those that do not change,
    with the time at which they were added."""
    current = list(current)
    kept = [taint for taint in current if is_set_by_karmada(Taint(key=str(taint.get("key", ""))))]
    known = {(taint.get("key"), taint.get("value"), taint.get("effect")): taint for taint in current}
    return [*kept, *(known.get((each["key"], each.get("value"), each["effect"]), each) for each in wanted)]


def _is_system(label: str) -> bool:
    domain, slash, _ = label.rpartition("/")
    return bool(slash) and any(domain == each or domain.endswith(f".{each}") for each in _SYSTEM_DOMAINS)
