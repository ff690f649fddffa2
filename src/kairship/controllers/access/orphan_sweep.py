"""Removes RBAC objects from members that Karmada has lost track of, and repairs changed ones.

Karmada loses track of an object when its instance is restored to a time before the right was given, or when a user of
the member removes the label and annotations by which Karmada recognises its objects. So members are swept when the
cache of their instance is a new one, and every ten minutes. A member that cannot be reached is swept when it can be.
"""

import asyncio
from collections.abc import Collection, Mapping
from weakref import WeakKeyDictionary

from kairship.controllers.access.desired import PREFIX, RESOURCES, Content, ObjectKey
from kairship.controllers.access.works import matches, object_in_member
from kairship.controllers.instance_cache import ACCESS_LABEL, InstanceCache
from kairship.instances.pool import NotConnected, Pool
from kairship.kube import Client, Conflict, KubeError, Object
from kairship.reconcile import Clock, Context

EVERY = 600.0
_TIMEOUT = 10.0


class OrphanSweep:
    """Remembers which members were swept, and when."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        # By member, for as long as the cache of its instance lasts.
        self._done: WeakKeyDictionary[InstanceCache, dict[str, float]] = WeakKeyDictionary()

    async def sweep(
        self,
        context: Context,
        cache: InstanceCache,
        clusters: Collection[str],
        desired: Mapping[ObjectKey, Content],
    ) -> None:
        """Sweeps the members that are due. `clusters` are the members that container management knows."""
        due = [cluster for cluster in clusters if not self._is_done(cluster, cache)]
        await asyncio.gather(*(self._sweep_one(context, cluster, cache, desired) for cluster in due))

    def _is_done(self, cluster: str, cache: InstanceCache) -> bool:
        since = self._done.get(cache, {}).get(cluster)
        return since is not None and self._clock.now() - since < EVERY

    async def _sweep_one(
        self, context: Context, cluster: str, cache: InstanceCache, desired: Mapping[ObjectKey, Content]
    ) -> None:
        try:
            member = self._pool.cluster(cluster)
            for kind in RESOURCES.values():
                page = await member.list(kind, label_selector=f"{ACCESS_LABEL}=true", timeout=_TIMEOUT)
                for item in page.items:
                    await _repair(context, member, cluster, {**item, "kind": kind.kind}, desired)
            self._done.setdefault(cache, {})[cluster] = self._clock.now()
        except (NotConnected, KubeError) as error:
            context.log.info("the RBAC objects of a member could not be checked", cluster=cluster, error=str(error))


async def _repair(
    context: Context, member: Client, cluster: str, item: Object, desired: Mapping[ObjectKey, Content]
) -> None:
    metadata = item["metadata"]
    key = ObjectKey(item["kind"], metadata.get("namespace", ""), metadata["name"])
    if not key.name.startswith(PREFIX):
        return
    content = desired.get(key)
    if content is not None and matches(item, cluster, key, content):
        return
    if context.term is not None:
        context.term.check()
    context.log.info("an RBAC object of a member is repaired", cluster=cluster, kind=key.kind, name=key.name)
    resource, namespace = RESOURCES[key.kind], key.namespace or None
    try:
        if content is None:
            await member.delete(resource, key.name, namespace=namespace, uid=metadata["uid"], missing_ok=True)
        else:
            marked = object_in_member(cluster, key, content)
            await member.apply(
                resource, marked, field_manager=context.owner.name, namespace=namespace, timeout=_TIMEOUT
            )
    except Conflict:
        return  # another object of this name exists since
