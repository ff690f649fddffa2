"""Filters and sorts clusters by a list request. They are filtered and sorted as messages."""

from collections.abc import Callable, Iterable, Iterator

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster, ClusterSpec, ClusterStatus
from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import ListClustersRequest
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.kpanda.services.clusters.view import provider_of
from kairship.rpc.listing import Order
from kairship.rpc.selectors import label_selector

Predicate = Callable[[Cluster], bool]


def metadata_of(cluster: Cluster) -> ObjectMeta:
    return cluster.metadata or ObjectMeta()


def spec_of(cluster: Cluster) -> ClusterSpec:
    return cluster.spec or ClusterSpec()


def status_of(cluster: Cluster) -> ClusterStatus:
    return cluster.status or ClusterStatus()


ORDER: Order[Cluster] = Order(
    name=lambda cluster: metadata_of(cluster).name,
    created=lambda cluster: metadata_of(cluster).creation_timestamp,
    keys={SortBy.state: lambda cluster: status_of(cluster).phase.name},
)


def select(clusters: Iterable[Cluster], request: ListClustersRequest) -> list[Cluster]:
    """The clusters that match a request. Raises `InvalidArgument` for a filter that is not valid."""
    filters = list(_filters(request))
    return [cluster for cluster in clusters if all(holds(cluster) for holds in filters)]


def _filters(request: ListClustersRequest) -> Iterator[Predicate]:
    if not request.include_virtual:
        yield lambda cluster: not status_of(cluster).virtual
    if search := request.search.lower():
        yield lambda cluster: search in metadata_of(cluster).name or search in spec_of(cluster).alias.lower()
    if phases := set(request.phase):
        yield lambda cluster: status_of(cluster).phase in phases
    if provider := request.provider:
        yield lambda cluster: provider_of(cluster) == provider
    if region := request.region:
        yield lambda cluster: spec_of(cluster).region == region
    if zone := request.zone:
        yield lambda cluster: zone in spec_of(cluster).zones
    if role := request.role:
        yield lambda cluster: role in spec_of(cluster).roles
    if version := request.kubernetes_version:
        # The dot keeps v1.3 from matching v1.34.
        yield lambda cluster: f"{status_of(cluster).kubernetes_version}.".startswith(f"{version}.")
    if instance := request.instance:
        yield lambda cluster: status_of(cluster).instance == instance
    if request.label_selector:
        labels = label_selector(request.label_selector)
        yield lambda cluster: labels(metadata_of(cluster).labels)
