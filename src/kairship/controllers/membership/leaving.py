"""Takes a cluster out of its instance, step by step: each reconcile does what it can and says what it waits for.

Only objects of this membership are removed: neither a Cluster of the same name that was joined by other means, nor the
account of another instance in the member.
"""

from kairship.controllers.global_cluster import GlobalCluster
from kairship.controllers.instance_cache import ACCESS_LABEL, InstanceCache, InstanceCaches
from kairship.controllers.membership.membership_status import MembershipStatusWriter
from kairship.controllers.membership.restarts import KarmadaRestarts
from kairship.instances import membership
from kairship.instances.pool import NotConnected, Pool
from kairship.kube import Client, Conflict, NotFound, kinds
from kairship.kube.cluster_identity import cluster_identity
from kairship.reconcile import DONE, Result, RetryAfter
from kairship.resources import MembershipCondition, MembershipPhase, MembershipReason, OnRemove

_SOON = 0.5
_RETRY = 30.0
_PATIENCE = 60.0  # how long Karmada may take with a member that answers
_R = MembershipReason
_LEAVING = MembershipCondition.LEAVING
_OWN_RBAC = (kinds.ROLE_BINDINGS, kinds.CLUSTER_ROLE_BINDINGS, kinds.CLUSTER_ROLES)


class Leaving:
    def __init__(
        self, cluster: GlobalCluster, restarts: KarmadaRestarts, *, pool: Pool, instance_caches: InstanceCaches
    ) -> None:
        self._cluster = cluster
        self._restarts = restarts
        self._pool = pool
        self._instance_caches = instance_caches

    async def leave(self, writer: MembershipStatusWriter) -> Result:
        """Takes the cluster out as far as that is possible now. Returns `DONE` when nothing of the membership is
        left."""
        name, spec = writer.membership.metadata.name, writer.membership.spec
        if not writer.begun:
            return DONE
        writer.set(phase=MembershipPhase.LEAVING)
        member, why = self._member(name)
        if member is None and not spec.force:
            message = f"{why}; set spec.force to leave Karmada's objects in the cluster"
            writer.set_condition(_LEAVING, "True", _R.CLUSTER_UNREACHABLE, message)
            return RetryAfter(_RETRY)
        if self._cluster.observed.store.get(spec.instance) is not None:
            waiting = await self._leave_instance(writer, member)
            if waiting is not None:
                return waiting
        if member is not None and await self._is_ours(writer, member):
            writer.set_condition(_LEAVING, "True", _R.CLEANING_UP)
            if missing := await self._clean(member, name):
                writer.set_condition(_LEAVING, "True", _R.CLEANING_UP, missing)
                return RetryAfter(_SOON)
        writer.set_condition(MembershipCondition.JOINED, "False", _R.LEFT)
        return DONE

    def _member(self, name: str) -> tuple[Client | None, str]:
        try:
            return self._pool.cluster(name), ""
        except NotConnected as error:
            return None, str(error)

    async def _leave_instance(self, writer: MembershipStatusWriter, member: Client | None) -> Result | None:
        """Removes the cluster from Karmada. Returns None when Karmada does not have it any more."""
        name, spec = writer.membership.metadata.name, writer.membership.spec
        try:
            instance, cache = self._pool.instance(spec.instance), self._instance_caches.get(spec.instance)
        except NotConnected as error:
            writer.set_condition(_LEAVING, "True", _R.INSTANCE_NOT_READY, str(error))
            return RetryAfter(_RETRY)
        if cache is None:
            writer.set_condition(
                _LEAVING, "True", _R.INSTANCE_NOT_READY, "the instance is being read; this takes a moment"
            )
            return RetryAfter(_SOON)
        uid = await self._own_cluster(writer, cache, instance, member)
        if uid is None and cache.clusters.store.get(name) is not None:
            return None  # a Cluster that this membership did not create
        keep = spec.on_remove is OnRemove.KEEP
        if keep and member is not None:
            await membership.revoke_access(member, name)
        waited = writer.seconds_in(_LEAVING, "True")
        impatient = spec.force and waited > _PATIENCE
        writer.set_condition(_LEAVING, "True", _R.REMOVING_WORKLOADS)
        try:
            left = await membership.leave(instance, name, by_force=keep or member is None or impatient, uid=uid)
        except Conflict:
            return RetryAfter(_SOON)  # another Cluster of this name exists since the cache was read
        if left is None:
            return None
        writer.set_condition(_LEAVING, "True", _R.REMOVING_WORKLOADS, left)
        if waited > _PATIENCE and member is not None:
            # Karmada's controllers are stuck although the member answers: they are restarted, if the driver can do
            # that.
            await self._restarts.restart_after_waiting(waited, spec.instance)
        return RetryAfter(_SOON)

    async def _own_cluster(
        self, writer: MembershipStatusWriter, cache: InstanceCache, instance: Client, member: Client | None
    ) -> str | None:
        """The UID of the Cluster that this membership created; None if there is none, or only a foreign one."""
        found = cache.clusters.store.get(writer.membership.metadata.name)
        if found is None:
            return None
        known = writer.status.karmada_cluster_uid
        if known is not None:
            return found.metadata.uid if found.metadata.uid == known else None
        # The join was killed before it could write the UID. The identity of the cluster shows whether it is ours.
        registered = self._cluster.clusters.store.get(writer.membership.metadata.name)
        identity = registered.status.id if registered is not None else None
        if identity is None and member is not None:
            identity = await cluster_identity(member)
        return found.metadata.uid if identity is not None and found.spec.id == identity else None

    async def _is_ours(self, writer: MembershipStatusWriter, member: Client) -> bool:
        """Whether Karmada's objects in the member belong to this instance."""
        try:
            instance = self._pool.instance(writer.membership.spec.instance)
        except NotConnected:
            # The instance is gone, and with it the identity to compare with.
            return writer.status.karmada_cluster_uid is not None
        return await membership.is_used_by(member, writer.membership.metadata.name, await cluster_identity(instance))

    async def _clean(self, member: Client, name: str) -> str | None:
        # Karmada brought our RBAC objects here; those that it did not remove are removed now.
        for kind in _OWN_RBAC:
            page = await member.list(kind, label_selector=f"{ACCESS_LABEL}=true")
            for item in page.items:
                metadata = item["metadata"]
                try:
                    await member.delete(kind, metadata["name"], namespace=metadata.get("namespace"))
                except NotFound:
                    continue
        return await membership.clean_up(member, name)
