"""Following the members of an instance: whatever changes on any of their three sides."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from kairship.apiserver.services.cluster.members import Member
from kairship.apiserver.services.cluster.part import Part
from kairship.apiserver.services.cluster.view import member_view
from kairship.apiserver.services.watching import Picture, follow_in_instance, place_of
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import Cluster
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import (
    WatchJoinedClustersRequest,
    WatchJoinedClustersResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.kube import Object, kinds
from kairship.reconcile import Change, Selection
from kairship.rpc.calls import Call
from kairship.rpc.own_kinds import SeenCluster, SeenMembership
from kairship.rpc.waiting import Waiting, running

_SYNCED = ""  # no cluster has this name


class Following(Part):
    async def watch_joined_clusters(
        self, request: WatchJoinedClustersRequest, call: Call
    ) -> AsyncIterator[WatchJoinedClustersResponse]:
        await self._own.instances.require(request.instance, call)
        waiting: Waiting[str] = Waiting()
        karmada: dict[str, Object] = {}

        def hear(change: Change[SeenMembership] | Change[SeenCluster]) -> None:
            if (about := change.new or change.old) is not None:
                waiting.add(about.metadata.name)

        async def follow_karmada() -> None:
            picture, synced = Picture(), False
            steps = follow_in_instance(self._reach, request.instance, Selection(kinds.CLUSTERS, dict), self._clock)
            async with aclosing(steps):
                async for step in steps:
                    there, gone, complete = picture.take(step)
                    for obj in there:
                        karmada[place_of(obj)[1]] = obj
                        waiting.add(place_of(obj)[1])
                    for _, name in gone:
                        karmada.pop(name, None)
                        waiting.add(name)
                    if complete and not synced:
                        synced = True
                        waiting.add(_SYNCED)

        endings = [self._own.memberships.reflector.subscribe(hear), self._own.clusters.reflector.subscribe(hear)]
        told: dict[str, Cluster] = {}
        try:
            async with running(follow_karmada()) as follower:
                while True:
                    await waiting.wait(follower)
                    while (name := waiting.take()) is not None:
                        if name == _SYNCED:
                            yield WatchJoinedClustersResponse(type=WatchEventType.SYNCED)
                            continue
                        now = await self._shown(request.instance, name, karmada.get(name), call)
                        if (event := _event(told.get(name), now)) is not None:
                            yield event
                        if now is None:
                            told.pop(name, None)
                        else:
                            told[name] = now
        finally:
            for end in endings:
                end()

    async def _shown(self, instance: str, name: str, karmada: Object | None, call: Call) -> Cluster | None:
        membership = self._own.memberships.reflector.store.get(name)
        if membership is not None and membership.spec.instance != instance:
            membership = None
        registered = self._own.clusters.reflector.store.get(name)
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
