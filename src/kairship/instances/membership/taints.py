"""The taints of a cluster in Karmada: ours beside those that Karmada and its policies put there themselves.

The list has one owner in the eyes of the API server, so it is read and written as a whole at one revision. Which of
them are ours is in an annotation: others' are left alone, also those that somebody's taint policy added.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kairship.instances.membership.manifests import FIELD_MANAGER
from kairship.kube import Client, Conflict, Object, kinds

OURS = "kairship.io/taints"
_ATTEMPTS = 5


class Taint(msgspec.Struct, frozen=True, order=True):
    key: str
    effect: str
    value: str = ""

    @property
    def name(self) -> str:
        """What makes two taints the same one."""
        return f"{self.key}:{self.effect}"


async def write_taints(instance: Client, cluster: str, wanted: Sequence[Taint]) -> None:
    """Idempotent: nothing is written that is there already."""
    for attempt in range(_ATTEMPTS):
        patch = patch_for(await instance.get(kinds.CLUSTERS, cluster), wanted)
        if patch is None:
            return
        try:
            await instance.patch(kinds.CLUSTERS, cluster, patch, field_manager=FIELD_MANAGER)
            return
        except Conflict:  # Karmada writes there too
            if attempt == _ATTEMPTS - 1:
                raise


def tainted_from_the_start(cluster: Object, wanted: Sequence[Taint]) -> Object:
    """A cluster that does not exist yet, with these taints."""
    names = ",".join(sorted(taint.name for taint in wanted))
    return {
        **cluster,
        "metadata": {**cluster["metadata"], "annotations": {OURS: names}},
        "spec": {**cluster["spec"], "taints": list(_ours((), wanted))},
    }


def patch_for(cluster: Object, wanted: Sequence[Taint]) -> dict[str, Any] | None:
    """From the taints that a cluster has to those that it should have; None if there is nothing to change."""
    metadata = cluster["metadata"]
    current: list[Object] = cluster["spec"].get("taints") or []
    ours = set(filter(None, (metadata.get("annotations") or {}).get(OURS, "").split(",")))
    names = {taint.name for taint in wanted}
    kept = [taint for taint in current if _name(taint) not in ours | names]
    taints = [*kept, *_ours(current, wanted)]
    if taints == current and ours == names:
        return None
    return {
        "metadata": {
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {OURS: ",".join(sorted(names)) or None},
        },
        "spec": {"taints": taints or None},
    }


def _ours(current: Iterable[Object], wanted: Iterable[Taint]) -> Iterable[Object]:
    # One that does not change keeps the time at which it was added: evictions are counted from there.
    known = {(taint.get("key"), taint.get("effect"), taint.get("value", "")): taint for taint in current}
    for taint in sorted(wanted):
        value = {"value": taint.value} if taint.value else {}
        yield known.get((taint.key, taint.effect, taint.value)) or {"key": taint.key, **value, "effect": taint.effect}


def _name(taint: Object) -> str:
    return f"{taint.get('key')}:{taint.get('effect')}"
