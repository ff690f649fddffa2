"""The watch on the members of an instance. It merges the changes of their three sources (see `members`)."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from kairship.apiserver.services.cluster.base import ClusterServiceBase
from kairship.apiserver.services.cluster.members import Member
from kairship.apiserver.services.cluster.view import member_view
from kairship.apiserver.services.instance_watch import KnownObjects, object_key, watch_instance
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import Cluster
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import (
    WatchJoinedClustersRequest,
    WatchJoinedClustersResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.kube import Object, kinds
from kairship.reconcile import Change, Selection
from kairship.rpc.calls import Call
from kairship.rpc.pending import Pending, background_task
from kairship.rpc.resource_cache import SeenCluster, SeenMembership

_SYNCED = ""  # no cluster has this name


class ClusterWatch(ClusterServiceBase):
    async def watch_joined_clusters(
        self, request: WatchJoinedClustersRequest, call: Call
    ) -> AsyncIterator[WatchJoinedClustersResponse]:
        await self._caches.instances.require(request.instance, call)
        changed: Pending[str] = Pending()
        karmada: dict[str, Object] = {}

        def on_change(change: Change[SeenMembership] | Change[SeenCluster]) -> None:
            if (obj := change.new or change.old) is not None:
                changed.add(obj.metadata.name)

        async def watch_karmada() -> None:
            known, synced = KnownObjects(), False
            steps = watch_instance(self._clients, request.instance, Selection(kinds.CLUSTERS, dict), self._clock)
            async with aclosing(steps):
                async for step in steps:
                    delta = known.apply(step)
                    for obj in delta.upserted:
                        karmada[object_key(obj).name] = obj
                        changed.add(object_key(obj).name)
                    for _, name in delta.deleted:
                        karmada.pop(name, None)
                        changed.add(name)
                    if delta.synced and not synced:
                        synced = True
                        changed.add(_SYNCED)

        unsubscribes = [
            self._caches.memberships.reflector.subscribe(on_change),
            self._caches.clusters.reflector.subscribe(on_change),
        ]
        sent: dict[str, Cluster] = {}
        try:
            async with background_task(watch_karmada()) as watcher:
                while True:
                    await changed.wait(watcher)
                    while (name := changed.take()) is not None:
                        if name == _SYNCED:
                            yield WatchJoinedClustersResponse(type=WatchEventType.SYNCED)
                            continue
                        now = await self._shown(request.instance, name, karmada.get(name), call)
                        if (event := _event(sent.get(name), now)) is not None:
                            yield event
                        if now is None:
                            sent.pop(name, None)
                        else:
                            sent[name] = now
        finally:
            for unsubscribe in unsubscribes:
                unsubscribe()

    async def _shown(self, instance: str, name: str, karmada: Object | None, call: Call) -> Cluster | None:
        membership = self._caches.memberships.reflector.store.get(name)
        if membership is not None and membership.spec.instance != instance:
            membership = None
        registered = self._caches.clusters.reflector.store.get(name)
        found = Member(name=name, instance=instance, karmada=karmada, membership=membership, registered=registered)
        return member_view(found) if found.exists else None


def _event(before: Cluster | None, now: Cluster | None) -> WatchJoinedClustersResponse | None:
    if now is None:
        if before is None:
            return None
        return WatchJoinedClustersResponse(type=WatchEventType.DELETED, cluster=before)
    if before == now:
        return None
    kind = WatchEventType.ADDED if before is None else WatchEventType.MODIFIED
    return WatchJoinedClustersResponse(type=kind, cluster=now)
