"""The status of a cluster, made of what there is and what was seen. Nothing is asked here."""

import datetime as dt
from collections.abc import Callable

import msgspec

from kairship.instances.pool_health import Health
from kairship.kpanda.collector import Progress
from kairship.kpanda.credentials.renewing import Outlook
from kairship.kpanda.status import findings
from kairship.kpanda.status.look import Seen
from kairship.reconcile import Clock
from kairship.resources import ClusterStatus
from kairship.resources.cluster import ClusterCredentials, ClusterResources, CollectorStatus
from kairship.rpc.own_kinds import SeenCluster


class Composer:
    def __init__(
        self,
        *,
        holder: str,
        objects: Callable[[str], int],
        outlook: Callable[[str], Outlook | None],
        clock: Clock,
        refresh: float,
    ) -> None:
        """`refresh` is how old figures may be, in seconds, that change all the time."""
        self._outlook = outlook
        self._holder = holder
        self._objects = objects
        self._clock = clock
        self._refresh = refresh

    def compose(
        self, cluster: SeenCluster, seen: Seen, health: Health, progress: Progress, *, duplicate_of: str
    ) -> ClusterStatus:
        """The status as it should be; equal to the one that there is if there is nothing to write."""
        before, now = cluster.status, self._clock.wall()
        deleting, generation = cluster.metadata.deletion_timestamp is not None, cluster.metadata.generation
        outlook = self._outlook(cluster.metadata.name)
        valid = findings.credentials(seen, before, duplicate_of=duplicate_of, outlook=outlook, now=now)
        conditions = before.conditions
        for finding in (findings.reachable(health), valid, findings.collected(progress)):
            if finding is not None:
                conditions = finding.among(conditions, generation=generation, now=now)
        ready = findings.readiness(conditions, deleting=deleting)
        conditions = ready.among(conditions, generation=generation, now=now)
        status = msgspec.structs.replace(
            before,
            observed_generation=generation,
            conditions=tuple(sorted(conditions, key=lambda condition: condition.type)),
            endpoint=seen.endpoint or before.endpoint,
        )
        if valid is not None and valid.status == "True":
            status = self._with_figures(status, seen, now)
        status = self._with_collector(status, cluster.metadata.uid, progress, now)
        phase = findings.phase_of(
            status.conditions, status, secret=seen.secret_version or _verified(before), deleting=deleting
        )
        return msgspec.structs.replace(status, phase=phase)

    def _with_figures(self, status: ClusterStatus, seen: Seen, now: dt.datetime) -> ClusterStatus:
        changes: dict[str, object] = {
            "id": status.id or seen.id,
            "kubernetes_version": seen.kubernetes_version or status.kubernetes_version,
            "credentials": self._credentials(status.credentials, seen, now),
        }
        if seen.nodes is not None:
            changes["nodes"] = seen.nodes.count
            changes["provider"] = seen.nodes.provider or "GENERIC"
            changes["resources"] = ClusterResources(
                capacity=dict(seen.nodes.capacity),
                allocatable=dict(seen.nodes.allocatable),
                allocated=dict(seen.requests or {}),
                used=dict(seen.usage or {}),
            )
        if seen.network is not None:
            changes["service_cidr"] = seen.network.service_cidr
            changes["pod_cidr"] = seen.network.pod_cidr
            changes["proxy_mode"] = seen.network.proxy_mode
        return msgspec.structs.replace(status, **changes)

    def _credentials(self, before: ClusterCredentials | None, seen: Seen, now: dt.datetime) -> ClusterCredentials:
        verified = ClusterCredentials(
            resource_version=seen.secret_version,
            verified_at=_second(now),
            expires_at=_second(seen.expires_at) if seen.expires_at else None,
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
    """Kubernetes keeps whole seconds."""
    return time.replace(microsecond=0)
