"""Bringing a cluster into its instance and keeping it there as container management describes it.

Going over a membership costs a dozen calls in two clusters, so it is done when something has changed that it was made
of, when Karmada says otherwise than it should, and now and then. What that is, is the `Basis`.
"""

import hashlib

import msgspec

from kairship.controllers.global_cluster import GlobalCluster, RegisteredCluster, SecretFingerprint
from kairship.controllers.inside import Inside, Insides, KarmadaCluster
from kairship.controllers.membership.attention import EVERY, Attention
from kairship.controllers.membership.report import Report
from kairship.controllers.membership.rotating import Rotating
from kairship.controllers.membership.wanted import join_of
from kairship.instances import membership
from kairship.instances.drivers import DriverError
from kairship.instances.membership import Join, JoinRefused, StillLeaving
from kairship.instances.pool import NotConnected, Pool, TargetKind
from kairship.kube import Client, KubeError
from kairship.reconcile import Clock, Result, RetryableError, RetryAfter, jittered
from kairship.resources import (
    NAMESPACE,
    ClusterCondition,
    ClusterReason,
    MembershipCondition,
    MembershipPhase,
    MembershipReason,
    find_condition,
)

_REFUSED_AGAIN = 60.0
_SOON = 2.0
_AT_ONCE = 0.01
_STALE = 0.2
_WAITING = 15.0  # until somebody has restarted what we may not
_R, _P = MembershipReason, MembershipPhase


class Basis(msgspec.Struct, frozen=True):
    """What a membership was made of. When it differs, it is gone over again."""

    instance_uid: str
    cluster_uid: str
    wanted: Join
    way: str
    """Where Karmada reaches the member, and whom it trusts there."""
    credential: str
    karmada: str
    """The Cluster as Karmada has it."""


class Joining:
    def __init__(
        self,
        cluster: GlobalCluster,
        rotating: Rotating,
        attention: Attention,
        *,
        pool: Pool,
        insides: Insides,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._rotating = rotating
        self._attention = attention
        self._pool = pool
        self._insides = insides
        self._clock = clock
        self._made: dict[str, tuple[Basis, float]] = {}

    def forget(self, name: str) -> None:
        self._made.pop(name, None)
        self._attention.forget(name)

    async def join(self, report: Report) -> Result:
        """Brings it about as far as possible and reports. Raises `RetryableError` when a step failed."""
        name, instance = report.membership.metadata.name, report.membership.spec.instance
        registered = self._cluster.clusters.store.get(name)
        if registered is None or registered.spec.virtual:
            report.not_joined(_P.PENDING, _R.CLUSTER_MISSING, f"container management has no cluster {name}")
            return RetryAfter(jittered(EVERY))
        inside, karmada = self._instance(report, instance)
        if inside is None or karmada is None:
            return RetryAfter(jittered(EVERY))
        self._observe(report, inside.clusters.store.get(name))
        try:
            member = self._pool.cluster(name)
        except NotConnected as error:
            report.not_joined(_P.PENDING, _R.CLUSTER_NOT_READY, str(error))
            self.forget(name)
            if report.joined:
                report.state(MembershipCondition.CREDENTIALS_CURRENT, "Unknown", _R.CLUSTER_NOT_READY, str(error))
            return RetryAfter(jittered(EVERY))
        if refusal := self._refusal(registered):
            report.not_joined(_P.FAILED, _R.DUPLICATE, refusal)
            return RetryAfter(_REFUSED_AGAIN)
        secret = self._secret_of(registered)
        if secret is not None and secret.kubeconfig != self._pool.credential(TargetKind.CLUSTER, name):
            return RetryAfter(_STALE)  # the pool and the picture of the Secrets hear of a change at different moments
        basis = self._basis(instance, registered, member, inside)
        if report.joined and self._holds(name, basis):
            return await self._attention.ensure(report, karmada)
        if not report.begun:
            # Known before anything is done: whoever takes the membership away must know what there may be.
            report.not_joined(_P.JOINING, _R.JOINING, "")
            return RetryAfter(_AT_ONCE)
        if not await self._go_over(report, karmada, member, basis):
            return RetryAfter(_WAITING)
        # Made of what we began with, and not of what there is by now: that may have changed in the meantime. What we
        # have changed ourselves costs a second round, which finds everything done.
        self._made[name] = (basis, self._clock.now())
        return await self._attention.ensure(report, karmada)

    def _instance(self, report: Report, name: str) -> tuple[Inside | None, Client | None]:
        found = self._cluster.observed.store.get(name)
        if found is None or found.metadata.deletion_timestamp is not None:
            report.not_joined(_P.PENDING, _R.INSTANCE_MISSING, f"there is no instance {name}")
            report.state(MembershipCondition.READY, "Unknown", _R.NOT_OBSERVED, "the instance does not exist")
            return None, None
        try:
            client, inside = self._pool.instance(name), self._insides.get(name)
        except NotConnected as error:
            report.not_joined(_P.PENDING, _R.INSTANCE_NOT_READY, str(error))
            report.state(MembershipCondition.READY, "Unknown", _R.NOT_OBSERVED, str(error))
            return None, None
        if inside is None:
            report.not_joined(_P.PENDING, _R.INSTANCE_NOT_READY, "the instance is being looked at")
        return inside, client

    def _observe(self, report: Report, known: KarmadaCluster | None) -> None:
        ready = known.status.find("Ready") if known is not None else None
        if ready is None:
            report.state(MembershipCondition.READY, "Unknown", _R.NOT_OBSERVED, "Karmada has not looked at it yet")
        elif ready.status == "True":
            report.state(MembershipCondition.READY, "True", _R.READY)
        else:
            report.state(MembershipCondition.READY, "False", _R.NOT_READY, ready.message)

    def _refusal(self, registered: RegisteredCluster) -> str:
        """Why a cluster must not join that container management knows twice."""
        name, identity = registered.metadata.name, registered.status.id
        valid = find_condition(registered.status.conditions, ClusterCondition.CREDENTIALS_VALID)
        if valid is not None and valid.reason in {ClusterReason.DUPLICATE, ClusterReason.OTHER_CLUSTER}:
            return valid.message or str(valid.reason)
        for twin in self._cluster.clusters_identified_by(identity or ""):
            its = self._cluster.memberships.store.get(twin.metadata.name)
            if its is not None and twin.metadata.name != name:
                return f"it is the same cluster as {twin.metadata.name}, which belongs to instance {its.spec.instance}"
        return ""

    def _basis(self, instance: str, registered: RegisteredCluster, member: Client, inside: Inside) -> Basis:
        found = self._cluster.observed.store.get(instance)
        secret = self._secret_of(registered)
        karmada = inside.clusters.store.get(registered.metadata.name)
        ready = karmada.status.find("Ready") if karmada is not None else None
        way = hashlib.sha256(member.connection.server.encode() + (member.connection.ca or b"")).hexdigest()
        shown = (karmada.metadata.uid, karmada.metadata.generation, karmada.metadata.labels) if karmada else ()
        return Basis(
            instance_uid=found.metadata.uid if found is not None else "",
            cluster_uid=registered.metadata.uid,
            wanted=join_of(registered),
            way=way,
            credential=str(secret.data) if secret is not None else "",
            karmada=f"{shown} {ready.status if ready is not None else ''}",
        )

    def _holds(self, name: str, basis: Basis) -> bool:
        known, since = self._made.get(name, (None, 0.0))
        return known == basis and self._clock.now() - since < EVERY

    async def _go_over(self, report: Report, karmada: Client, member: Client, basis: Basis) -> bool:
        """Whether all is done."""
        registered = self._cluster.clusters.store.get(basis.wanted.name)
        secret = self._secret_of(registered)
        edition = membership.edition_of(member.connection, secret.metadata.labels if secret is not None else None)
        try:
            joined = await membership.join(
                instance=karmada,
                member=member,
                reached_at=member.connection,
                wanted=basis.wanted,
                edition=edition,
            )
            retired = await self._rotating.retire(report, instance=karmada, member=member, edition=edition)
        except StillLeaving as error:
            report.not_joined(_P.JOINING, _R.JOINING, str(error))
            raise RetryableError(str(error), after=_SOON) from error
        except JoinRefused as error:
            report.not_joined(_P.FAILED, _R.DUPLICATE, str(error))
            self._fail(report, error)
            raise RetryableError(str(error), after=_REFUSED_AGAIN) from error
        except (KubeError, DriverError) as error:
            report.not_joined(_P.JOINING, _R.JOIN_FAILED, str(error))
            self._fail(report, error)
            raise RetryableError(str(error)) from error
        version = secret.metadata.resource_version if secret is not None else ""
        ends = registered.status.credentials.expires_at if registered and registered.status.credentials else None
        report.has_joined(joined.uid, credentials_version=version, credentials_end=ends)
        return retired

    def _fail(self, report: Report, error: Exception) -> None:
        if report.joined:
            report.state(MembershipCondition.CREDENTIALS_CURRENT, "False", _R.ROTATION_FAILED, str(error))

    def _secret_of(self, registered: RegisteredCluster | None) -> SecretFingerprint | None:
        """The Secret with the cluster's credential."""
        if registered is None:
            return None
        return self._cluster.secrets.store.get(registered.spec.credentials.name, namespace=NAMESPACE)
