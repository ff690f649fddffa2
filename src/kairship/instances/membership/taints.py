"""The taints of a Cluster in Karmada: ours, beside those that Karmada and its taint policies set.

To server-side apply the list is atomic, with one owner; so it is read and written as a whole at one revision. An
annotation says which taints are ours; all others are left alone.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kairship.instances.membership.manifests import FIELD_MANAGER
from kairship.kube import Client, Object, kinds, retry_on_conflict

OURS = "kairship.io/taints"
_ATTEMPTS = 5


class Taint(msgspec.Struct, frozen=True, order=True):
    key: str
    effect: str
    value: str = ""

    @property
    def name(self) -> str:
        """Identifies the taint: two taints with the same key and effect are the same one."""
        return f"{self.key}:{self.effect}"


async def write_taints(instance: Client, cluster: str, wanted: Sequence[Taint]) -> None:
    """Makes the Cluster have exactly these taints of ours. Writes nothing if it has them already."""

    async def write() -> None:
        patch = patch_for(await instance.get(kinds.CLUSTERS, cluster), wanted)
        if patch is not None:
            await instance.patch(kinds.CLUSTERS, cluster, patch, field_manager=FIELD_MANAGER)

    await retry_on_conflict(write, attempts=_ATTEMPTS)  # Karmada writes to the Cluster too


def tainted_from_the_start(cluster: Object, wanted: Sequence[Taint]) -> Object:
    """Returns the manifest of a Cluster to be created, with these taints."""
    names = ",".join(sorted(taint.name for taint in wanted))
    return {
        **cluster,
        "metadata": {**cluster["metadata"], "annotations": {OURS: names}},
        "spec": {**cluster["spec"], "taints": list(_ours((), wanted))},
    }


def patch_for(cluster: Object, wanted: Sequence[Taint]) -> dict[str, Any] | None:
    """Returns the patch from the taints that a Cluster has to the wanted ones; None if there is nothing to change."""
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
    # A taint that does not change keeps the time at which it was added: Karmada evicts relative to that time.
    known = {(taint.get("key"), taint.get("effect"), taint.get("value", "")): taint for taint in current}
    for taint in sorted(wanted):
        value = {"value": taint.value} if taint.value else {}
        yield known.get((taint.key, taint.effect, taint.value)) or {"key": taint.key, **value, "effect": taint.effect}


def _name(taint: Object) -> str:
    return f"{taint.get('key')}:{taint.get('effect')}"
