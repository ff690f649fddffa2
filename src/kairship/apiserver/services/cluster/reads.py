"""Lists of clusters: those that can join an instance, those that have joined, their labels and their locations."""

from collections.abc import Sequence

from kairship.apiserver.auth.authorisation import no_instance
from kairship.apiserver.services.cluster import filters
from kairship.apiserver.services.cluster.base import ClusterServiceBase
from kairship.apiserver.services.cluster.joining import join_refusal
from kairship.apiserver.services.cluster.members import Member
from kairship.apiserver.services.cluster.view import member_view, registered_view, zones_of
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import Cluster
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import (
    ClusterLabels,
    ClusterLocation,
    ListClustersLabelsRequest,
    ListClustersLabelsResponse,
    ListClustersLocationSummaryRequest,
    ListClustersLocationSummaryResponse,
    ListClustersRequest,
    ListClustersResponse,
    ListJoinedClustersRequest,
    ListJoinedClustersResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import Pagination
from kairship.rpc.calls import Call
from kairship.rpc.listing import ALL, page_of


class ClusterReads(ClusterServiceBase):
    async def list_clusters(self, request: ListClustersRequest, call: Call) -> ListClustersResponse:
        if request.instance and not call.sight.coverage.includes(request.instance):
            raise no_instance(request.instance)
        instance = await self._caches.instances.require(request.instance, call) if request.instance else None
        registered = await self._registered_clusters(call)
        shown = [
            registered_view(
                cluster,
                instance=registered.instance_of(name),
                refusal=join_refusal(name, instance, registered),
            )
            for name, cluster in registered.visible().items()
        ]
        items, pagination = _page(shown, request)
        return ListClustersResponse(items=list(items), pagination=pagination)

    async def list_joined_clusters(self, request: ListJoinedClustersRequest, call: Call) -> ListJoinedClustersResponse:
        await self._caches.instances.require(request.instance, call)
        shown = [member_view(member) for member in await self._members.all(request.instance, call)]
        items, pagination = _page(shown, request)
        return ListJoinedClustersResponse(items=list(items), pagination=pagination)

    async def list_clusters_labels(self, request: ListClustersLabelsRequest, call: Call) -> ListClustersLabelsResponse:
        shown = [member_view(member) for member in await self._members.all(request.instance, call)]
        return ListClustersLabelsResponse(
            cluster_labels=[
                ClusterLabels(cluster=cluster.metadata.name, labels=cluster.metadata.labels)
                for cluster in shown
                if cluster.metadata is not None
            ]
        )

    async def list_clusters_location_summary(
        self, request: ListClustersLocationSummaryRequest, call: Call
    ) -> ListClustersLocationSummaryResponse:
        """A cluster that spans several zones is listed once for each."""
        members = await self._members.all(request.instance, call)
        return ListClustersLocationSummaryResponse(
            locations=[location for member in members for location in _locations(member)]
        )


def _page(shown: list[Cluster], request: filters.Request) -> tuple[Sequence[Cluster], Pagination]:
    if request.all_cluster:
        request.page_size = ALL
    return page_of(filters.select(shown, request), filters.ORDER, request)


def _locations(member: Member) -> list[ClusterLocation]:
    spec = (member.karmada or {}).get("spec", {})
    provider, region, zones = spec.get("provider", ""), spec.get("region", ""), zones_of(member.karmada or {})
    if member.karmada is None and member.registered is not None:
        registered = member.registered.spec
        provider, region, zones = registered.provider, registered.region, list(registered.zones)
    return [ClusterLocation(cluster=member.name, provider=provider, region=region, zone=zone) for zone in zones or [""]]
