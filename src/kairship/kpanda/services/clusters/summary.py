"""Counts clusters and adds up their resources. Pure functions."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterPhase
from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster, NodeCount, Resources
from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import GetClusterSummaryResponse
from kairship.kpanda.services.clusters.filters import spec_of, status_of
from kairship.kpanda.services.clusters.view import provider_of
from kairship.kpanda.verification import EXPIRES_SOON
from kairship.kube.quantities import add_up, as_quantities


def summary_of(clusters: Iterable[Cluster], *, now: dt.datetime) -> GetClusterSummaryResponse:
    """The summary of clusters. Virtual clusters are not counted."""
    found = [cluster for cluster in clusters if not status_of(cluster).virtual]
    statuses = [status_of(cluster) for cluster in found]
    ends_soon = (now + EXPIRES_SOON).timestamp()
    nodes = [status.nodes for status in statuses if status.nodes is not None]
    return GetClusterSummaryResponse(
        total=len(found),
        phases=dict(Counter(status.phase.name for status in statuses)),
        providers=dict(Counter(provider_of(cluster) for cluster in found if provider_of(cluster))),
        regions=dict(Counter(spec_of(cluster).region for cluster in found if spec_of(cluster).region)),
        versions=dict(Counter(status.kubernetes_version for status in statuses if status.kubernetes_version)),
        joined=sum(bool(status.instance) for status in statuses),
        expiring=sum(
            status.credential is not None and 0 < status.credential.expires_at < ends_soon for status in statuses
        ),
        stale=sum(status.phase is not ClusterPhase.RUNNING and status.nodes is not None for status in statuses),
        nodes=NodeCount(total=sum(each.total for each in nodes), ready=sum(each.ready for each in nodes)),
        resources=_sum(status.resources for status in statuses if status.resources is not None),
    )


def _sum(resources: Iterable[Resources]) -> Resources:
    sums: dict[str, dict[str, Decimal]] = {"capacity": {}, "allocatable": {}, "allocated": {}, "used": {}}
    for each in resources:
        for field, amounts in sums.items():
            add_up(amounts, getattr(each, field))
    return Resources(**{field: as_quantities(amounts) for field, amounts in sums.items()})
