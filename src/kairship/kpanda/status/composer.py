"""Composes the status of a cluster from the existing status and what is known now. It makes no requests."""

import datetime as dt
from collections.abc import Callable

import msgspec

from kairship.instances.pool.health import Health
from kairship.kpanda.collector import Progress
from kairship.kpanda.credentials.renewal import RenewalStatus
from kairship.kpanda.status import findings
from kairship.kpanda.status.probe import ProbeResult
from kairship.reconcile import Clock
from kairship.resources import ClusterStatus
from kairship.resources.cluster import ClusterCredentials, ClusterResources, CollectorStatus
from kairship.rpc.resource_cache import SeenCluster


class Composer:
    def __init__(
        self,
        *,
        holder: str,
        objects: Callable[[str], int],
        renewal_status: Callable[[str], RenewalStatus | None],
        clock: Clock,
        refresh: float,
    ) -> None:
        """`refresh` is the age in seconds at which figures that change all the time are written again."""
        self._renewal_status = renewal_status
        self._holder = holder
        self._objects = objects
        self._clock = clock
        self._refresh = refresh

    def compose(
        self, cluster: SeenCluster, found: ProbeResult, health: Health, progress: Progress, *, duplicate_of: str
    ) -> ClusterStatus:
        """The status as it should be. It is equal to the existing one if there is nothing to write."""
        before, now = cluster.status, self._clock.wall()
        deleting, generation = cluster.metadata.deletion_timestamp is not None, cluster.metadata.generation
        renewal_status = self._renewal_status(cluster.metadata.name)
        valid = findings.credentials(found, before, duplicate_of=duplicate_of, renewal_status=renewal_status, now=now)
        conditions = before.conditions
        for finding in (findings.reachable(health), valid, findings.collected(progress)):
            if finding is not None:
                conditions = finding.merged_into(conditions, generation=generation, now=now)
        ready = findings.readiness(conditions, deleting=deleting)
        conditions = ready.merged_into(conditions, generation=generation, now=now)
        status = msgspec.structs.replace(
            before,
            observed_generation=generation,
            conditions=tuple(sorted(conditions, key=lambda condition: condition.type)),
            endpoint=found.endpoint or before.endpoint,
        )
        if valid is not None and valid.status == "True":
            status = self._with_figures(status, found, now)
        status = self._with_collector(status, cluster.metadata.uid, progress, now)
        phase = findings.phase_of(
            status.conditions, status, secret=found.secret_version or _verified(before), deleting=deleting
        )
        return msgspec.structs.replace(status, phase=phase)

    def _with_figures(self, status: ClusterStatus, found: ProbeResult, now: dt.datetime) -> ClusterStatus:
        changes: dict[str, object] = {
            "id": status.id or found.id,
            "kubernetes_version": found.kubernetes_version or status.kubernetes_version,
            "credentials": self._credentials(status.credentials, found, now),
        }
        if found.nodes is not None:
            changes["nodes"] = found.nodes.count
            changes["provider"] = found.nodes.provider or "GENERIC"
            changes["resources"] = ClusterResources(
                capacity=dict(found.nodes.capacity),
                allocatable=dict(found.nodes.allocatable),
                allocated=dict(found.requests or {}),
                used=dict(found.usage or {}),
            )
        if found.network is not None:
            changes["service_cidr"] = found.network.service_cidr
            changes["pod_cidr"] = found.network.pod_cidr
            changes["proxy_mode"] = found.network.proxy_mode
        return msgspec.structs.replace(status, **changes)

    def _credentials(
        self, before: ClusterCredentials | None, found: ProbeResult, now: dt.datetime
    ) -> ClusterCredentials:
        verified = ClusterCredentials(
            resource_version=found.secret_version,
            verified_at=_second(now),
            expires_at=_second(found.expires_at) if found.expires_at else None,
        )
        if before is not None and now - before.verified_at < dt.timedelta(seconds=self._refresh):
            unchanged = msgspec.structs.replace(verified, verified_at=before.verified_at)
            return before if unchanged == before else verified
        return verified

    def _with_collector(self, status: ClusterStatus, uid: str, progress: Progress, now: dt.datetime) -> ClusterStatus:
        before = status.collector
        fresh = before is not None and now - before.measured_at < dt.timedelta(seconds=self._refresh)
        if before is not None and fresh and (before.holder, before.kinds) == (self._holder, progress.kinds):
            return status
        measured = CollectorStatus(
            holder=self._holder,
            kinds=progress.kinds,
            objects=self._objects(uid),
            lag_milliseconds=int(progress.lag * 1000),
            measured_at=_second(now),
        )
        return msgspec.structs.replace(status, collector=measured)


def _verified(status: ClusterStatus) -> str:
    return status.credentials.resource_version if status.credentials else ""


def _second(time: dt.datetime) -> dt.datetime:
    """The time in whole seconds, as Kubernetes stores times."""
    return time.replace(microsecond=0)
