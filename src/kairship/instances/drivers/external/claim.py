"""The claim on an adopted Karmada: a ConfigMap that names the instance which has adopted it.

The ConfigMap is in the Karmada itself, which is the only thing that all possible adopters share, be they two instances
of one plane or two planes. Creating it is atomic, so of two instances that try at once one is refused.
"""

from typing import Any

from kairship.instances.drivers.driver import AdoptRefused
from kairship.kube import AlreadyExists, Client, NotFound, kinds

# Every Karmada has this namespace and never propagates it to its members.
NAMESPACE = "kube-system"
NAME = "kairship-instance"
CLAIM = f"ConfigMap {NAMESPACE}/{NAME}"


async def claim(client: Client, *, uid: str, name: str) -> None:
    """Claims the Karmada for instance `uid`. Idempotent; raises `AdoptRefused` if another instance has claimed it."""
    config_map = {"metadata": {"name": NAME}, "data": {"uid": uid, "name": name}}
    try:
        await client.create(kinds.CONFIGMAPS, config_map, namespace=NAMESPACE)
        return
    except AlreadyExists:
        found = await client.get(kinds.CONFIGMAPS, NAME, namespace=NAMESPACE)
    _refuse_foreign(found, uid)


async def is_held(client: Client, *, uid: str) -> bool:
    """Whether instance `uid` has claimed the Karmada."""
    return await _find(client, uid) is not None


async def release(client: Client, *, uid: str) -> None:
    """Deletes the claim if it is that of instance `uid`."""
    found = await _find(client, uid)
    if found is not None:
        await client.delete(
            kinds.CONFIGMAPS,
            NAME,
            namespace=NAMESPACE,
            uid=found["metadata"]["uid"],
            missing_ok=True,
        )


async def _find(client: Client, uid: str) -> Any:
    """The claim of instance `uid`; None if there is none, or that of another instance."""
    try:
        found = await client.get(kinds.CONFIGMAPS, NAME, namespace=NAMESPACE)
    except NotFound:
        return None
    return found if _holder(found).get("uid") == uid else None


def _refuse_foreign(found: Any, uid: str) -> None:
    holder = _holder(found)
    if holder.get("uid") != uid:
        raise AdoptRefused(
            f"this Karmada has been adopted already, as instance {holder.get('name')!r} (UID {holder.get('uid')}). "
            f"Delete that instance first; if it does not exist any more, delete {CLAIM} in the Karmada"
        )


def _holder(found: Any) -> dict[str, str]:
    return found.get("data") or {}
