"""Lists of clusters: those that could join, those that have, their labels and places."""

from collections.abc import Sequence

from kairship.apiserver.authorisation import no_instance
from kairship.apiserver.services.cluster import filters
from kairship.apiserver.services.cluster.joining import refusal
from kairship.apiserver.services.cluster.members import Member
from kairship.apiserver.services.cluster.part import Part
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


class Reading(Part):
    async def list_clusters(self, request: ListClustersRequest, call: Call) -> ListClustersResponse:
        if request.instance and not call.sight.reach.includes(request.instance):
            raise no_instance(request.instance)
        instance = await self._own.instances.require(request.instance, call) if request.instance else None
        registry = await self._registry(call)
        shown = [
            registered_view(cluster, instance=registry.instance_of(name), refusal=refusal(name, instance, registry))
            for name, cluster in registry.shown().items()
        ]
        items, pagination = _page(shown, request)
        return ListClustersResponse(items=list(items), pagination=pagination)

    async def list_joined_clusters(self, request: ListJoinedClustersRequest, call: Call) -> ListJoinedClustersResponse:
        await self._own.instances.require(request.instance, call)
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
        """A cluster that spans several zones is in each of them."""
        members = await self._members.all(request.instance, call)
        return ListClustersLocationSummaryResponse(locations=[place for member in members for place in _places(member)])


def _page(shown: list[Cluster], request: filters.Request) -> tuple[Sequence[Cluster], Pagination]:
    if request.all_cluster:
        request.page_size = ALL
    return page_of(filters.select(shown, request), filters.ORDER, request)


def _places(member: Member) -> list[ClusterLocation]:
    spec = (member.karmada or {}).get("spec", {})
    provider, region, zones = spec.get("provider", ""), spec.get("region", ""), zones_of(member.karmada or {})
    if member.karmada is None and member.registered is not None:
        registered = member.registered.spec
        provider, region, zones = registered.provider, registered.region, list(registered.zones)
    return [ClusterLocation(cluster=member.name, provider=provider, region=region, zone=zone) for zone in zones or [""]]
