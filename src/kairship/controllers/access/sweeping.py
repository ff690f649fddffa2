"""A look into the members themselves: what Karmada does not know of any more, it does not remove either.

That happens when an instance is restored to a time before a right was given, or when somebody in a member takes off
the marks by which Karmada recognises its objects. So members are gone over when the picture of an instance is a new
one, and now and then. One that cannot be reached is gone over when it can: what Karmada has to do there it does by
itself.
"""

import asyncio
from collections.abc import Collection, Mapping
from weakref import WeakKeyDictionary

from kairship.controllers.access.desired import PREFIX, RESOURCES, Content, Place
from kairship.controllers.access.works import is_as, object_in_member
from kairship.controllers.inside import ACCESS_LABEL, Inside
from kairship.instances.pool import NotConnected, Pool
from kairship.kube import Client, Conflict, KubeError, Object
from kairship.reconcile import Clock, Context

EVERY = 600.0
_TIMEOUT = 10.0


class Sweeping:
    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        # What was gone over, and when, for as long as the picture lasts.
        self._done: WeakKeyDictionary[Inside, dict[str, float]] = WeakKeyDictionary()

    async def sweep(
        self,
        context: Context,
        inside: Inside,
        clusters: Collection[str],
        desired: Mapping[Place, Content],
    ) -> None:
        """If it is due. `clusters` are members of the instance that container management has."""
        due = [cluster for cluster in clusters if not self._is_done(cluster, inside)]
        await asyncio.gather(*(self._sweep_one(context, cluster, inside, desired) for cluster in due))

    def _is_done(self, cluster: str, inside: Inside) -> bool:
        since = self._done.get(inside, {}).get(cluster)
        return since is not None and self._clock.now() - since < EVERY

    async def _sweep_one(
        self, context: Context, cluster: str, inside: Inside, desired: Mapping[Place, Content]
    ) -> None:
        try:
            member = self._pool.cluster(cluster)
            for kind in RESOURCES.values():
                page = await member.list(kind, label_selector=f"{ACCESS_LABEL}=true", timeout=_TIMEOUT)
                for item in page.items:
                    await _set_right(context, member, cluster, {**item, "kind": kind.kind}, desired)
            self._done.setdefault(inside, {})[cluster] = self._clock.now()
        except (NotConnected, KubeError) as error:
            context.log.info("the rights in a member could not be gone over", cluster=cluster, error=str(error))


async def _set_right(
    context: Context, member: Client, cluster: str, item: Object, desired: Mapping[Place, Content]
) -> None:
    metadata = item["metadata"]
    place = Place(item["kind"], metadata.get("namespace", ""), metadata["name"])
    if not place.name.startswith(PREFIX):
        return
    content = desired.get(place)
    if content is not None and is_as(item, cluster, place, content):
        return
    if context.term is not None:
        context.term.check()
    context.log.info("rights in a member were not as they should be", cluster=cluster, kind=place.kind, name=place.name)
    resource, namespace = RESOURCES[place.kind], place.namespace or None
    try:
        if content is None:
            await member.delete(resource, place.name, namespace=namespace, uid=metadata["uid"], missing_ok=True)
        else:
            marked = object_in_member(cluster, place, content)
            await member.apply(
                resource, marked, field_manager=context.owner.name, namespace=namespace, timeout=_TIMEOUT
            )
    except Conflict:
        return  # another one of this name since
