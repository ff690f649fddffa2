"""Taking a cluster out of its instance: step by step, each look does what can be done and says what it waits for.

Nothing is removed that is not this membership's: neither a Cluster of the same name that somebody else joined, nor the
account that a member gave to another instance.
"""

from kairship.controllers.global_cluster import GlobalCluster
from kairship.controllers.inside import ACCESS_LABEL, Inside, Insides
from kairship.controllers.membership.report import Report
from kairship.controllers.membership.restarts import Restarts
from kairship.instances import membership
from kairship.instances.pool import NotConnected, Pool
from kairship.kube import Client, Conflict, NotFound, kinds
from kairship.reconcile import DONE, Result, RetryAfter
from kairship.resources import MembershipCondition, MembershipPhase, MembershipReason, OnRemove

_SOON = 0.5
_AGAIN = 30.0
_PATIENCE = 60.0  # with Karmada, if the member does answer
_R = MembershipReason
_LEAVING = MembershipCondition.LEAVING
_OWN_RBAC = (kinds.ROLE_BINDINGS, kinds.CLUSTER_ROLE_BINDINGS, kinds.CLUSTER_ROLES)


class Leaving:
    def __init__(self, cluster: GlobalCluster, restarts: Restarts, *, pool: Pool, insides: Insides) -> None:
        self._cluster = cluster
        self._restarts = restarts
        self._pool = pool
        self._insides = insides

    async def leave(self, report: Report) -> Result:
        """`DONE` when nothing of the membership is left."""
        name, spec = report.membership.metadata.name, report.membership.spec
        if not report.begun:
            return DONE
        report.set(phase=MembershipPhase.LEAVING)
        member, why = self._member(name)
        if member is None and not spec.force:
            message = f"{why}; set spec.force to leave what is in it"
            report.state(_LEAVING, "True", _R.CLUSTER_UNREACHABLE, message)
            return RetryAfter(_AGAIN)
        if self._cluster.observed.store.get(spec.instance) is not None:
            waiting = await self._out_of_the_instance(report, member)
            if waiting is not None:
                return waiting
        if member is not None and await self._is_ours(report, member):
            report.state(_LEAVING, "True", _R.CLEANING_UP)
            if missing := await self._clean(member, name):
                report.state(_LEAVING, "True", _R.CLEANING_UP, missing)
                return RetryAfter(_SOON)
        report.state(MembershipCondition.JOINED, "False", _R.LEFT)
        return DONE

    def _member(self, name: str) -> tuple[Client | None, str]:
        try:
            return self._pool.cluster(name), ""
        except NotConnected as error:
            return None, str(error)

    async def _out_of_the_instance(self, report: Report, member: Client | None) -> Result | None:
        """None when the instance does not have the cluster any more."""
        name, spec = report.membership.metadata.name, report.membership.spec
        try:
            instance, inside = self._pool.instance(spec.instance), self._insides.get(spec.instance)
        except NotConnected as error:
            report.state(_LEAVING, "True", _R.INSTANCE_NOT_READY, str(error))
            return RetryAfter(_AGAIN)
        if inside is None:
            report.state(_LEAVING, "True", _R.INSTANCE_NOT_READY, "the instance is being looked at")
            return RetryAfter(_SOON)
        uid = await self._own_cluster(report, inside, instance, member)
        if uid is None and inside.clusters.store.get(name) is not None:
            return None  # somebody else's
        keep = spec.on_remove is OnRemove.KEEP
        if keep and member is not None:
            await membership.disarm(member, name)
        waited = report.since(_LEAVING, "True")
        impatient = spec.force and waited > _PATIENCE
        report.state(_LEAVING, "True", _R.REMOVING_WORKLOADS)
        try:
            left = await membership.depart(instance, name, by_force=keep or member is None or impatient, uid=uid)
        except Conflict:
            return RetryAfter(_SOON)  # another Cluster has the name since the picture was made
        if left is None:
            return None
        report.state(_LEAVING, "True", _R.REMOVING_WORKLOADS, left)
        if waited > _PATIENCE and member is not None:
            # Its controllers get no further with a member that answers: once more from the beginning, if we may.
            await self._restarts.after_waiting(waited, spec.instance)
        return RetryAfter(_SOON)

    async def _own_cluster(self, report: Report, inside: Inside, instance: Client, member: Client | None) -> str | None:
        """The UID of the Cluster that this membership made; None if there is none, or only another's."""
        found = inside.clusters.store.get(report.membership.metadata.name)
        if found is None:
            return None
        known = report.status.karmada_cluster_uid
        if known is not None:
            return found.metadata.uid if found.metadata.uid == known else None
        # The join was killed before it could say so. Its identity tells whose it is.
        registered = self._cluster.clusters.store.get(report.membership.metadata.name)
        identity = registered.status.id if registered is not None else None
        if identity is None and member is not None:
            identity = await membership.identity(member)
        return found.metadata.uid if identity is not None and found.spec.id == identity else None

    async def _is_ours(self, report: Report, member: Client) -> bool:
        """Whether what Karmada has in the member is of this instance."""
        try:
            instance = self._pool.instance(report.membership.spec.instance)
        except NotConnected:
            # It is gone with everything, and with its identity.
            return report.status.karmada_cluster_uid is not None
        return await membership.is_used_by(member, report.membership.metadata.name, await membership.identity(instance))

    async def _clean(self, member: Client, name: str) -> str | None:
        # People's rights came by Karmada; what it did not take along goes now.
        for kind in _OWN_RBAC:
            page = await member.list(kind, label_selector=f"{ACCESS_LABEL}=true")
            for item in page.items:
                metadata = item["metadata"]
                try:
                    await member.delete(kind, metadata["name"], namespace=metadata.get("namespace"))
                except NotFound:
                    continue
        return await membership.clean(member, name)
