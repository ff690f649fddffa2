"""The mark in an adopted Karmada that says whose it is.

It is inside the Karmada itself, the one place that everybody who might adopt it shares: two instances of one plane, or
two planes. Creating it is atomic, so of two that try at once one is refused.
"""

from typing import Any

from kairship.instances.drivers.driver import AdoptRefused
from kairship.kube import AlreadyExists, Client, NotFound, kinds

# Every Karmada has this namespace, never spreads it over its members, and is identified by it.
NAMESPACE = "kube-system"
NAME = "kairship-instance"
MARK = f"ConfigMap {NAMESPACE}/{NAME}"


async def claim(client: Client, *, uid: str, name: str) -> None:
    """Mark it as that of instance `uid`. Idempotent; refuses when it is another's."""
    mark = {"metadata": {"name": NAME}, "data": {"uid": uid, "name": name}}
    try:
        await client.create(kinds.CONFIGMAPS, mark, namespace=NAMESPACE)
        return
    except AlreadyExists:
        found = await client.get(kinds.CONFIGMAPS, NAME, namespace=NAMESPACE)
    _refuse_foreign(found, uid)


async def release(client: Client, *, uid: str) -> None:
    """Take the mark away if it is that of instance `uid`."""
    try:
        found = await client.get(kinds.CONFIGMAPS, NAME, namespace=NAMESPACE)
    except NotFound:
        return
    if _holder(found).get("uid") == uid:
        await client.delete(
            kinds.CONFIGMAPS,
            NAME,
            namespace=NAMESPACE,
            uid=found["metadata"]["uid"],
            missing_ok=True,
        )


def _refuse_foreign(found: Any, uid: str) -> None:
    holder = _holder(found)
    if holder.get("uid") != uid:
        raise AdoptRefused(
            f"this Karmada has been adopted already, as instance {holder.get('name')!r} (UID {holder.get('uid')}). "
            f"Delete that instance first; if it does not exist any more, delete {MARK} in the Karmada"
        )


def _holder(found: Any) -> dict[str, str]:
    return found.get("data") or {}
