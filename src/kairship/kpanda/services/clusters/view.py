"""Makes `Cluster` messages of clusters. Pure functions. The name of a cluster's Secret is not shown."""

from collections.abc import Iterable

from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterPhase
from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import (
    Cluster,
    ClusterSpec,
    ClusterStatus,
    CredentialStatus,
    NodeCount,
    Resources,
)
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.resources import cluster as own
from kairship.rpc.resource_cache import SeenCluster
from kairship.rpc.views import conditions_view, metadata_view, unix_seconds


def cluster_view(seen: SeenCluster, *, instance: str) -> Cluster:
    spec, status = seen.spec, seen.status
    nodes, collector = status.nodes, status.collector
    return Cluster(
        metadata=metadata_view(seen.metadata),
        spec=ClusterSpec(
            alias=spec.alias,
            provider=spec.provider,
            region=spec.region,
            zones=list(spec.zones),
            roles=list(spec.roles),
            managed_by=spec.managed_by,
            endpoint=spec.endpoint or "",
            taints=taints_view(spec.taints),
        ),
        status=ClusterStatus(
            phase=_phase(seen),
            conditions=conditions_view(status.conditions),
            id=status.id or "",
            virtual=spec.virtual,
            instance=instance,
            endpoint=status.endpoint,
            provider=status.provider,
            kubernetes_version=status.kubernetes_version,
            service_cidr=status.service_cidr,
            pod_cidr=status.pod_cidr,
            proxy_mode=status.proxy_mode,
            nodes=NodeCount(total=nodes.total, ready=nodes.ready) if nodes else None,
            resources=_resources(status.resources) if status.resources else None,
            credential=_credential(status.credentials) if status.credentials else None,
            lag_milliseconds=collector.lag_milliseconds if collector else 0,
            objects=collector.objects if collector else 0,
        ),
    )


def provider_of(cluster: Cluster) -> str:
    """The provider that a user has set, or the observed one."""
    spec, status = cluster.spec or ClusterSpec(), cluster.status or ClusterStatus()
    return spec.provider or status.provider


def taints_view(taints: Iterable[own.Taint]) -> list[Taint]:
    return [Taint(key=taint.key, value=taint.value, effect=TaintEffect[str(taint.effect)]) for taint in taints]


def _phase(seen: SeenCluster) -> ClusterPhase:
    if seen.metadata.deletion_timestamp is not None:
        return ClusterPhase.DELETING
    return ClusterPhase[str(seen.status.phase or "CREATING")]


def _resources(resources: own.ClusterResources) -> Resources:
    return Resources(
        capacity=dict(resources.capacity),
        allocatable=dict(resources.allocatable),
        allocated=dict(resources.allocated),
        used=dict(resources.used),
    )


def _credential(credential: own.ClusterCredentials) -> CredentialStatus:
    return CredentialStatus(
        verified_at=unix_seconds(credential.verified_at), expires_at=unix_seconds(credential.expires_at)
    )
