"""The filters and the order of cluster lists. Registered clusters and members are treated alike, as messages."""

from collections.abc import Callable, Iterable, Iterator

from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import (
    Cluster,
    ClusterPhase,
    ClusterProvider,
    ClusterSpec,
    ClusterStatus,
)
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import ListClustersRequest, ListJoinedClustersRequest
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.gen.kairship.types.v1alpha1.selector_pb import (
    ClusterFieldSelector,
    ClusterSelectorOperator,
    ClusterSelectorRequirement,
)
from kairship.rpc.errors import InvalidArgument
from kairship.rpc.listing import Order
from kairship.rpc.selectors import field_selector, label_selector
from kairship.wire import UnreadableError, read

Request = ListClustersRequest | ListJoinedClustersRequest
Predicate = Callable[[Cluster], bool]


def _name(cluster: Cluster) -> str:
    return (cluster.metadata or ObjectMeta()).name


def _spec(cluster: Cluster) -> ClusterSpec:
    return cluster.spec or ClusterSpec()


def _status(cluster: Cluster) -> ClusterStatus:
    return cluster.status or ClusterStatus()


ORDER: Order[Cluster] = Order(
    name=_name,
    created=lambda cluster: (cluster.metadata or ObjectMeta()).creation_timestamp,
    keys={SortBy.state: lambda cluster: _status(cluster).phase.name, SortBy.cluster: _name},
)

_FIELDS: dict[str, Callable[[Cluster], str]] = {
    "metadata.name": _name,
    "spec.region": lambda cluster: _spec(cluster).region,
    "spec.zone": lambda cluster: _spec(cluster).zone,
    "spec.provider": lambda cluster: _spec(cluster).provider.name,
    "status.phase": lambda cluster: _status(cluster).phase.name,
    "status.kubernetesVersion": lambda cluster: _status(cluster).kubernetes_version,
}
_SELECTABLE: dict[str, Callable[[Cluster], list[str]]] = {
    "provider": lambda cluster: [_spec(cluster).provider.name],
    "region": lambda cluster: [region] if (region := _spec(cluster).region) else [],
    "zone": lambda cluster: _zones(cluster),
}


def select(clusters: Iterable[Cluster], request: Request) -> list[Cluster]:
    """Returns the clusters that the request asks for. Raises `InvalidArgument` for a malformed filter."""
    predicates = list(_predicates(request))
    return [cluster for cluster in clusters if all(matches(cluster) for matches in predicates)]


def _predicates(request: Request) -> Iterator[Predicate]:
    if name := request.name:
        yield lambda cluster: name in _name(cluster)
    if roles := set(request.role):
        yield lambda cluster: not roles.isdisjoint(_spec(cluster).roles)
    if version := request.kubernetes_version:
        # The dot keeps v1.3 from matching v1.34.
        yield lambda cluster: f"{_status(cluster).kubernetes_version}.".startswith(f"{version}.")
    if request.phase:
        phase = _known(request.phase, ClusterPhase.__members__, "phase")
        yield lambda cluster: _status(cluster).phase.name == phase
    if managed_by := request.managed_by:
        yield lambda cluster: _spec(cluster).managed_by == managed_by
    if region := request.region:
        yield lambda cluster: _spec(cluster).region == region
    if request.provider:
        provider = _known(request.provider, ClusterProvider.__members__, "provider")
        yield lambda cluster: _spec(cluster).provider.name == provider
    if zone := request.zone:
        yield lambda cluster: zone in _zones(cluster)
    if request.label_selector:
        labels = label_selector(request.label_selector)
        yield lambda cluster: labels((cluster.metadata or ObjectMeta()).labels)
    if request.field_selector:
        yield field_selector(request.field_selector, _FIELDS)
    if request.cluster_selector:
        yield from _cluster_selector(request.cluster_selector)


def _cluster_selector(text: str) -> Iterator[Predicate]:
    try:
        selector = read(ClusterFieldSelector, text.encode(), strict=True).message
    except UnreadableError as error:
        raise InvalidArgument(violations=[("clusterSelector", str(error))]) from error
    for requirement in selector.match_expressions:
        if requirement.key not in _SELECTABLE:
            known = ", ".join(_SELECTABLE)
            raise InvalidArgument(violations=[("clusterSelector", f"{requirement.key!r} is none of {known}")])
        yield _requirement(requirement)


def _requirement(requirement: ClusterSelectorRequirement) -> Predicate:
    values_of, wanted = _SELECTABLE[requirement.key], set(requirement.values)
    match requirement.operator:
        case ClusterSelectorOperator.In:
            return lambda cluster: not wanted.isdisjoint(values_of(cluster))
        case ClusterSelectorOperator.NotIn:
            return lambda cluster: wanted.isdisjoint(values_of(cluster))
        case ClusterSelectorOperator.Exists:
            return lambda cluster: bool(values_of(cluster))
        case ClusterSelectorOperator.DoesNotExist:
            return lambda cluster: not values_of(cluster)
        case _:
            raise InvalidArgument(
                violations=[
                    (
                        "clusterSelector",
                        "these keys have no numbers to compare: use In, NotIn, Exists or DoesNotExist",
                    )
                ]
            )


def _known(value: str, names: Iterable[str], field: str) -> str:
    if value.upper() not in names:
        raise InvalidArgument(violations=[(field, f"{value[:60]!r} is none of {', '.join(names)}")])
    return value.upper()


def _zones(cluster: Cluster) -> list[str]:
    return [zone for zone in _spec(cluster).zone.split(",") if zone]
