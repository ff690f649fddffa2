"""Clusters joining, leaving, and changing their labels and taints.

Of a cluster that container management has, the wish is written there and a controller carries it into the instance. One
that joined its Karmada without us is changed where it is.
"""

from typing import Any

from protobuf.wkt import Empty

from kairship.apiserver.services.cluster.joining import refusal
from kairship.apiserver.services.cluster.members import Member
from kairship.apiserver.services.cluster.part import Part
from kairship.apiserver.services.cluster.taints import check_taints, karmada_taints, label_patch
from kairship.apiserver.services.cluster.view import member_view
from kairship.apiserver.services.reach import FIELD_MANAGER
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
from kairship.kube import AlreadyExists, Conflict, KubeError, Object, kinds
from kairship.resources import OnRemove
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, ApiError, FailedPrecondition, NotFound
from kairship.rpc.own_kinds import SeenCluster, SeenInstance, SeenMembership
from kairship.rpc.refusals import told_as_precondition

_ATTEMPTS = 5


class Changing(Part):
    async def join_cluster(self, request: JoinClusterRequest, call: Call) -> Empty:
        instance = await self._own.instances.require(request.instance, call)
        wanted = request.cluster or Cluster()
        labels = dict((wanted.metadata or ObjectMeta()).labels)
        taints = check_taints((wanted.spec or ClusterSpec()).taints)
        await self._refuse(request.name, instance, call)
        if not labels and not taints:
            await self._join(request.name, instance, call)
            return Empty()
        registered = await self._own.clusters.require_latest(request.name, call)
        changed = await self._write_registered(
            registered, {**(registered.metadata.labels or {}), **labels}, taints, call
        )
        try:
            await self._join(request.name, instance, call)
        except (KubeError, ApiError):
            await self._undo(changed, registered, call)
            raise
        return Empty()

    async def join_clusters(self, request: JoinClustersRequest, call: Call) -> JoinClustersResponse:
        instance = await self._own.instances.require(request.instance, call)
        results = []
        for name in request.clusters:
            result = JoinClustersResponse.Result(cluster=name)
            try:
                await self._refuse(name, instance, call)
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
        if member.is_ours:
            await self._write_registered(
                await self._own.clusters.require_latest(request.name, call), labels, taints, call
            )
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
        resource, client = self._own.memberships.resource, self._own.client
        spec = {"onRemove": str(OnRemove.KEEP if request.keep_workloads else OnRemove.DELETE), "force": request.force}
        await client.patch(resource, request.name, {"spec": spec}, field_manager=FIELD_MANAGER, timeout=patience(call))
        await client.delete(resource, request.name, uid=membership.metadata.uid, timeout=patience(call))
        await self._own.memberships.deleted(request.name, membership.metadata.uid, call)
        return Empty()

    async def _refuse(self, name: str, instance: SeenInstance, call: Call) -> None:
        registry = await self._registry(call)
        if name not in registry.clusters:
            await self._own.clusters.hear_of(name, call)
            registry = await self._registry(call)
        if not registry.shows(name):
            raise NotFound(f"container management has no cluster {name}: register it first")
        if reason := refusal(name, instance, registry):
            raise FailedPrecondition(f"cluster {name} cannot join instance {instance.metadata.name}: {reason}")

    async def _join(self, name: str, instance: SeenInstance, call: Call) -> None:
        wish = {"metadata": {"name": name}, "spec": {"instance": instance.metadata.name}}
        try:
            with told_as_precondition():  # the instance may be deleted in between
                created = await self._own.client.create(
                    self._own.memberships.resource,
                    wish,
                    field_manager=FIELD_MANAGER,
                    as_type=SeenMembership,
                    timeout=patience(call),
                )
        except AlreadyExists:
            raise FailedPrecondition(f"cluster {name} has joined an instance in the meantime") from None
        await self._own.memberships.written(name, created.metadata.resource_version, call)

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
        changed = await self._own.client.patch(
            self._own.clusters.resource,
            name,
            patch,
            field_manager=FIELD_MANAGER,
            as_type=SeenCluster,
            timeout=patience(call),
        )
        await self._own.clusters.written(name, changed.metadata.resource_version, call)
        return changed

    async def _undo(self, changed: SeenCluster, before: SeenCluster, call: Call) -> None:
        """Nothing is half done: if somebody has changed it since, it is theirs."""
        taints = [{"key": taint.key, "value": taint.value, "effect": str(taint.effect)} for taint in before.spec.taints]
        try:
            await self._write_registered(changed, dict(before.metadata.labels or {}), taints, call)
        except KubeError:
            return

    async def _write_karmada(self, member: Member, labels: dict[str, str], taints: list[Object], call: Call) -> None:
        for _ in range(_ATTEMPTS):
            client = self._reach.instance(member.instance)
            current = await client.get(kinds.CLUSTERS, member.name, timeout=patience(call))
            metadata: dict[str, Any] = current["metadata"]
            patch = {
                "metadata": {
                    "resourceVersion": metadata["resourceVersion"],
                    "labels": label_patch(metadata.get("labels") or {}, labels),
                },
                "spec": {"taints": karmada_taints(current["spec"].get("taints") or [], taints)},
            }
            try:
                await client.patch(
                    kinds.CLUSTERS, member.name, patch, field_manager=FIELD_MANAGER, timeout=patience(call)
                )
            except Conflict:  # Karmada writes there every few seconds
                continue
            return
        raise Aborted(f"cluster {member.name} is being changed by others at the same time; try again")
