"""Joins a cluster to its instance and keeps it there as container management describes it.

A join costs a dozen calls to two clusters, so it is repeated only when its `JoinInputs` have changed, Karmada's own
Cluster among them, and every ten minutes.
"""

import hashlib

import msgspec

from kairship.controllers.global_cluster import GlobalCluster, RegisteredCluster, SecretFingerprint
from kairship.controllers.instance_cache import InstanceCache, InstanceCaches, KarmadaCluster
from kairship.controllers.membership.desired import join_of
from kairship.controllers.membership.membership_status import MembershipStatusWriter
from kairship.controllers.membership.stall_detection import EVERY, StallDetector
from kairship.controllers.membership.token_rotation import TokenRotation
from kairship.instances import membership
from kairship.instances.drivers import DriverError
from kairship.instances.membership import ControlPlaneRefused, Join, JoinRefused, StillLeaving
from kairship.instances.pool import NotConnected, Pool, TargetKind
from kairship.kube import Client, KubeError
from kairship.reconcile import STALE, Clock, Result, RetryableError, RetryAfter, jittered
from kairship.resources import (
    NAMESPACE,
    ClusterCondition,
    ClusterReason,
    MembershipCondition,
    MembershipPhase,
    MembershipReason,
    find_condition,
)

_REFUSED_RETRY = 60.0
_LEAVING_RETRY = 2.0
_IMMEDIATELY = 0.01
_RESTART_RETRY = 15.0  # until the operator of an adopted Karmada has restarted its controllers
_R, _P = MembershipReason, MembershipPhase


class JoinInputs(msgspec.Struct, frozen=True):
    """The inputs of a join. When they have changed, the join is repeated."""

    instance_uid: str
    cluster_uid: str
    wanted: Join
    endpoint: str
    """A digest of the address at which Karmada reaches the member, and of its CA."""
    credential: str
    karmada: str
    """The identity and state of Karmada's own Cluster."""


class Joining:
    """Remembers with which inputs each membership was joined."""

    def __init__(
        self,
        cluster: GlobalCluster,
        rotation: TokenRotation,
        stalls: StallDetector,
        *,
        pool: Pool,
        instance_caches: InstanceCaches,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._rotation = rotation
        self._stalls = stalls
        self._pool = pool
        self._instance_caches = instance_caches
        self._clock = clock
        self._joined: dict[str, tuple[JoinInputs, float]] = {}

    def forget(self, name: str) -> None:
        self._joined.pop(name, None)
        self._stalls.forget(name)

    async def join(self, writer: MembershipStatusWriter) -> Result:
        """Joins the cluster as far as that is possible now. Raises `RetryableError` when a step failed."""
        name, instance = writer.membership.metadata.name, writer.membership.spec.instance
        registered = self._cluster.clusters.store.get(name)
        if registered is None or registered.spec.virtual:
            writer.set_not_joined(_P.PENDING, _R.CLUSTER_MISSING, f"container management has no cluster {name}")
            return RetryAfter(jittered(EVERY))
        cache, karmada = self._instance(writer, instance)
        if cache is None or karmada is None:
            return RetryAfter(jittered(EVERY))
        self._observe(writer, cache.clusters.store.get(name))
        try:
            member = self._pool.cluster(name)
        except NotConnected as error:
            writer.set_not_joined(_P.PENDING, _R.CLUSTER_NOT_READY, str(error))
            self.forget(name)
            if writer.joined:
                writer.set_condition(
                    MembershipCondition.CREDENTIALS_CURRENT, "Unknown", _R.CLUSTER_NOT_READY, str(error)
                )
            return RetryAfter(jittered(EVERY))
        if refusal := self._refusal(registered):
            writer.set_not_joined(_P.FAILED, _R.DUPLICATE, refusal)
            return RetryAfter(_REFUSED_RETRY)
        secret = self._secret_of(registered)
        if secret is not None and secret.kubeconfig != self._pool.credential_fingerprint(TargetKind.CLUSTER, name):
            return STALE  # the pool and the cache of Secrets learn of a change at different moments
        inputs = self._inputs(instance, registered, member, cache)
        if writer.joined and self._is_current(name, inputs):
            return await self._stalls.check(writer, karmada)
        if not writer.begun:
            # Written before anything is done: a later removal must know that there may be something to undo.
            writer.set_not_joined(_P.JOINING, _R.JOINING, "")
            return RetryAfter(_IMMEDIATELY)
        if not await self._join_karmada(writer, karmada, member, inputs):
            return RetryAfter(_RESTART_RETRY)
        # The inputs that the join began with are remembered, not the present ones, which may have changed meanwhile.
        # Our own changes of Karmada's Cluster cost a second round, which finds everything done.
        self._joined[name] = (inputs, self._clock.now())
        return await self._stalls.check(writer, karmada)

    def _instance(self, writer: MembershipStatusWriter, name: str) -> tuple[InstanceCache | None, Client | None]:
        found = self._cluster.observed.store.get(name)
        if found is None or found.metadata.deletion_timestamp is not None:
            writer.set_not_joined(_P.PENDING, _R.INSTANCE_MISSING, f"there is no instance {name}")
            writer.set_condition(MembershipCondition.READY, "Unknown", _R.NOT_OBSERVED, "the instance does not exist")
            return None, None
        try:
            client, cache = self._pool.instance(name), self._instance_caches.get(name)
        except NotConnected as error:
            writer.set_not_joined(_P.PENDING, _R.INSTANCE_NOT_READY, str(error))
            writer.set_condition(MembershipCondition.READY, "Unknown", _R.NOT_OBSERVED, str(error))
            return None, None
        if cache is None:
            writer.set_not_joined(_P.PENDING, _R.INSTANCE_NOT_READY, "the instance is being read; this takes a moment")
        return cache, client

    def _observe(self, writer: MembershipStatusWriter, known: KarmadaCluster | None) -> None:
        ready = known.status.find("Ready") if known is not None else None
        if ready is None:
            writer.set_condition(
                MembershipCondition.READY, "Unknown", _R.NOT_OBSERVED, "Karmada has not checked it yet"
            )
        elif ready.status == "True":
            writer.set_condition(MembershipCondition.READY, "True", _R.READY)
        else:
            writer.set_condition(MembershipCondition.READY, "False", _R.NOT_READY, ready.message)

    def _refusal(self, registered: RegisteredCluster) -> str:
        """Why a cluster that is registered twice must not join; empty if it may."""
        name, identity = registered.metadata.name, registered.status.id
        valid = find_condition(registered.status.conditions, ClusterCondition.CREDENTIALS_VALID)
        if valid is not None and valid.reason in {ClusterReason.DUPLICATE, ClusterReason.OTHER_CLUSTER}:
            return valid.message or str(valid.reason)
        for twin in self._cluster.clusters_with_identity(identity or ""):
            other = self._cluster.memberships.store.get(twin.metadata.name)
            if other is not None and twin.metadata.name != name:
                return (
                    f"it is the same cluster as {twin.metadata.name}, which belongs to instance {other.spec.instance}"
                )
        return ""

    def _inputs(self, instance: str, registered: RegisteredCluster, member: Client, cache: InstanceCache) -> JoinInputs:
        found = self._cluster.observed.store.get(instance)
        secret = self._secret_of(registered)
        karmada = cache.clusters.store.get(registered.metadata.name)
        ready = karmada.status.find("Ready") if karmada is not None else None
        endpoint = hashlib.sha256(member.connection.server.encode() + (member.connection.ca or b"")).hexdigest()
        shown = (karmada.metadata.uid, karmada.metadata.generation, karmada.metadata.labels) if karmada else ()
        return JoinInputs(
            instance_uid=found.metadata.uid if found is not None else "",
            cluster_uid=registered.metadata.uid,
            wanted=join_of(registered),
            endpoint=endpoint,
            credential=str(secret.data) if secret is not None else "",
            karmada=f"{shown} {ready.status if ready is not None else ''}",
        )

    def _is_current(self, name: str, inputs: JoinInputs) -> bool:
        known, since = self._joined.get(name, (None, 0.0))
        return known == inputs and self._clock.now() - since < EVERY

    async def _join_karmada(
        self, writer: MembershipStatusWriter, karmada: Client, member: Client, inputs: JoinInputs
    ) -> bool:
        """Joins the cluster. Returns whether nothing is left to do, old tokens included."""
        registered = self._cluster.clusters.store.get(inputs.wanted.name)
        secret = self._secret_of(registered)
        edition = membership.edition_of(member.connection, secret.metadata.labels if secret is not None else None)
        try:
            joined = await membership.join(
                instance=karmada,
                member=member,
                reached_at=member.connection,
                wanted=inputs.wanted,
                edition=edition,
                control_planes=await self._control_planes(),
            )
            retired = await self._rotation.retire_old_tokens(writer, instance=karmada, member=member, edition=edition)
        except StillLeaving as error:
            writer.set_not_joined(_P.JOINING, _R.JOINING, str(error))
            raise RetryableError(str(error), after=_LEAVING_RETRY) from error
        except JoinRefused as error:
            reason = _R.CONTROL_PLANE if isinstance(error, ControlPlaneRefused) else _R.DUPLICATE
            writer.set_not_joined(_P.FAILED, reason, str(error))
            self._set_rotation_failed(writer, error)
            raise RetryableError(str(error), after=_REFUSED_RETRY) from error
        except (KubeError, DriverError) as error:
            writer.set_not_joined(_P.JOINING, _R.JOIN_FAILED, str(error))
            self._set_rotation_failed(writer, error)
            raise RetryableError(str(error)) from error
        version = secret.metadata.resource_version if secret is not None else ""
        ends = registered.status.credentials.expires_at if registered and registered.status.credentials else None
        writer.set_joined(joined.uid, credentials_version=version, credentials_end=ends)
        return retired

    async def _control_planes(self) -> set[str]:
        """The identities of the global cluster and of all instances, whose hidden clusters know them."""
        hidden = {each.status.id for each in self._cluster.clusters.store if each.spec.virtual and each.status.id}
        return {await self._cluster.identity(), *hidden}

    def _set_rotation_failed(self, writer: MembershipStatusWriter, error: Exception) -> None:
        if writer.joined:
            writer.set_condition(MembershipCondition.CREDENTIALS_CURRENT, "False", _R.ROTATION_FAILED, str(error))

    def _secret_of(self, registered: RegisteredCluster | None) -> SecretFingerprint | None:
        """The Secret with the cluster's credential."""
        if registered is None:
            return None
        return self._cluster.secrets.store.get(registered.spec.credentials.name, namespace=NAMESPACE)
