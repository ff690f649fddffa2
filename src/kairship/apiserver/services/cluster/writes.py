"""Joining and removing clusters, and changing their labels and taints.

For a cluster that is registered in container management, the change is written to its custom resource there, and a
controller carries it into the instance. A cluster that joined its Karmada without Kairship is changed in the instance.
"""

from typing import Any

from protobuf.wkt import Empty

from kairship.apiserver.auth.authorisation import needed
from kairship.apiserver.services.cluster.base import ClusterServiceBase
from kairship.apiserver.services.cluster.joining import ATTACH, join_refusal
from kairship.apiserver.services.cluster.members import Member
from kairship.apiserver.services.cluster.taints import check_taints, karmada_taints, label_patch
from kairship.apiserver.services.cluster.view import member_view
from kairship.apiserver.services.instance_clients import FIELD_MANAGER
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import Cluster, ClusterSpec
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import (
    JoinClusterRequest,
    JoinClustersRequest,
    JoinClustersResponse,
    RemoveJoinedClusterRequest,
    UpdateJoinedClusterRequest,
    UpdateJoinedClusterResponse,
)
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.kube import AlreadyExists, KubeError, Object, kinds, retry_on_conflict
from kairship.resources import OnRemove
from kairship.rpc.admission_errors import admission_as_failed_precondition
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, ApiError, FailedPrecondition, NotFound
from kairship.rpc.resource_cache import SeenCluster, SeenInstance, SeenMembership

_ATTEMPTS = 5


class ClusterWrites(ClusterServiceBase):
    async def join_cluster(self, request: JoinClusterRequest, call: Call) -> Empty:
        instance = await self._caches.instances.require(request.instance, call)
        wanted = request.cluster or Cluster()
        labels = dict((wanted.metadata or ObjectMeta()).labels)
        taints = check_taints((wanted.spec or ClusterSpec()).taints)
        await self._check_join(request.name, instance, call)
        if not labels and not taints:
            await self._join(request.name, instance, call)
            return Empty()
        registered, changed = await self._change_registered(request.name, labels, taints, call, keep_labels=True)
        try:
            await self._join(request.name, instance, call)
        except (KubeError, ApiError):
            await self._undo(changed, registered, call)
            raise
        return Empty()

    async def join_clusters(self, request: JoinClustersRequest, call: Call) -> JoinClustersResponse:
        instance = await self._caches.instances.require(request.instance, call)
        results = []
        for name in request.clusters:
            result = JoinClustersResponse.Result(cluster=name)
            try:
                await self._check_join(name, instance, call)
                await self._join(name, instance, call)
            except ApiError as error:
                result.refusal = error.message
            except KubeError as error:
                result.refusal = str(error)
            results.append(result)
        return JoinClustersResponse(results=results)

    async def update_joined_cluster(
        self, request: UpdateJoinedClusterRequest, call: Call
    ) -> UpdateJoinedClusterResponse:
        wanted = request.cluster or Cluster()
        labels = dict((wanted.metadata or ObjectMeta()).labels)
        taints = check_taints((wanted.spec or ClusterSpec()).taints)
        member = await self._member(request.instance, request.name, call)
        if member.is_managed:
            await self._change_registered(request.name, labels, taints, call)
        else:
            await self._write_karmada(member, labels, taints, call)
        return UpdateJoinedClusterResponse(
            cluster=member_view(await self._member(request.instance, request.name, call))
        )

    async def remove_joined_cluster(self, request: RemoveJoinedClusterRequest, call: Call) -> Empty:
        member = await self._member(request.instance, request.name, call)
        membership = member.membership
        if membership is None:
            raise FailedPrecondition(
                f"cluster {request.name} joined instance {request.instance} without Kairship: remove it the way it "
                "joined (`kairship member remove` in the embedded plane, `karmadactl unjoin` elsewhere)"
            )
        resource, client = self._caches.memberships.resource, self._caches.client
        spec = {"onRemove": str(OnRemove.KEEP if request.keep_workloads else OnRemove.DELETE), "force": request.force}
        await client.patch(resource, request.name, {"spec": spec}, field_manager=FIELD_MANAGER, timeout=patience(call))
        await client.delete(resource, request.name, uid=membership.metadata.uid, timeout=patience(call))
        await self._caches.memberships.deleted(request.name, membership.metadata.uid, call)
        return Empty()

    async def _check_join(self, name: str, instance: SeenInstance, call: Call) -> None:
        registered = await self._registered_clusters(call)
        if name not in registered.clusters:
            await self._caches.clusters.wait_for_latest(name, call)
            registered = await self._registered_clusters(call)
        if not registered.is_visible(name):
            raise NotFound(f"container management has no cluster {name}: register it first")
        if not registered.is_attachable(name):
            raise needed(ATTACH)
        if reason := join_refusal(name, instance, registered):
            raise FailedPrecondition(f"cluster {name} cannot join instance {instance.metadata.name}: {reason}")

    async def _join(self, name: str, instance: SeenInstance, call: Call) -> None:
        membership = {"metadata": {"name": name}, "spec": {"instance": instance.metadata.name}}
        try:
            with admission_as_failed_precondition():  # the instance may have been deleted meanwhile
                created = await self._caches.client.typed(SeenMembership).create(
                    self._caches.memberships.resource,
                    membership,
                    field_manager=FIELD_MANAGER,
                    timeout=patience(call),
                )
        except AlreadyExists:
            raise FailedPrecondition(f"cluster {name} has joined an instance in the meantime") from None
        await self._caches.memberships.written(name, created.metadata.resource_version, call)

    async def _change_registered(
        self, name: str, labels: dict[str, str], taints: list[Object], call: Call, *, keep_labels: bool = False
    ) -> tuple[SeenCluster, SeenCluster]:
        """Writes labels and taints of a registered cluster. Returns it as it was and as it is now."""

        async def write() -> tuple[SeenCluster, SeenCluster]:
            before = await self._caches.clusters.require_latest(name, call)
            kept = before.metadata.labels or {} if keep_labels else {}
            return before, await self._write_registered(before, {**kept, **labels}, taints, call)

        # A conflict is usually due to container management, which has written the status.
        exhausted = Aborted(f"cluster {name} is being changed by others at the same time; try again")
        return await retry_on_conflict(write, attempts=_ATTEMPTS, exhausted=exhausted)

    async def _write_registered(
        self, current: SeenCluster, labels: dict[str, str], taints: list[Object], call: Call
    ) -> SeenCluster:
        name = current.metadata.name
        patch = {
            "metadata": {
                "resourceVersion": current.metadata.resource_version,
                "labels": label_patch(current.metadata.labels or {}, labels),
            },
            "spec": {"taints": taints},
        }
        changed = await self._caches.client.typed(SeenCluster).patch(
            self._caches.clusters.resource,
            name,
            patch,
            field_manager=FIELD_MANAGER,
            timeout=patience(call),
        )
        await self._caches.clusters.written(name, changed.metadata.resource_version, call)
        return changed

    async def _undo(self, changed: SeenCluster, before: SeenCluster, call: Call) -> None:
        """Restores the labels and taints, unless another writer has changed the cluster since."""
        taints = [{"key": taint.key, "value": taint.value, "effect": str(taint.effect)} for taint in before.spec.taints]
        try:
            await self._write_registered(changed, dict(before.metadata.labels or {}), taints, call)
        except KubeError:
            return

    async def _write_karmada(self, member: Member, labels: dict[str, str], taints: list[Object], call: Call) -> None:
        async def write() -> None:
            client = self._clients.instance(member.instance)
            current = await client.get(kinds.CLUSTERS, member.name, timeout=patience(call))
            metadata: dict[str, Any] = current["metadata"]
            patch = {
                "metadata": {
                    "resourceVersion": metadata["resourceVersion"],
                    "labels": label_patch(metadata.get("labels") or {}, labels),
                },
                "spec": {"taints": karmada_taints(current["spec"].get("taints") or [], taints)},
            }
            await client.patch(kinds.CLUSTERS, member.name, patch, field_manager=FIELD_MANAGER, timeout=patience(call))

        # Karmada writes this object every few seconds.
        exhausted = Aborted(f"cluster {member.name} is being changed by others at the same time; try again")
        await retry_on_conflict(write, attempts=_ATTEMPTS, exhausted=exhausted)
