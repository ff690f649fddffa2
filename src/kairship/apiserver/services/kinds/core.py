"""The part of the Core service that tells of workloads: events, and pods in the member clusters."""

from typing import Any

from kairship.apiserver.services.kinds import events, pods
from kairship.apiserver.services.resources import Operations, Query
from kairship.apiserver.services.resources.kind import Predicate
from kairship.gen.kairship.core.v1alpha1.event_pb import (
    ListEventsRequest,
    ListEventsResponse,
    ListInstanceEventKindsRequest,
    ListInstanceEventKindsResponse,
    ListInstanceEventsRequest,
    ListInstanceEventsResponse,
)
from kairship.gen.kairship.core.v1alpha1.pod_pb import (
    ListPodsForMemberClusterRequest,
    ListPodsForMemberClusterResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import Pagination
from kairship.kube import Object, Resource, kinds
from kairship.rpc.calls import Call
from kairship.rpc.listing import Order, Window, is_descending


class CoreService:
    """kairship.v1alpha1.Core."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def list_events(self, request: ListEventsRequest, call: Call) -> ListEventsResponse:
        client = self._operations.reach.instance(request.instance)
        about = await events.about(client, request, call)
        found, pagination = await self._page(
            request, kinds.EVENTS, events.ORDER, [events.of_types(request.type), about], call
        )
        return ListEventsResponse(items=[events.event_view(obj) for obj in found], pagination=pagination)

    async def list_instance_events(self, request: ListInstanceEventsRequest, call: Call) -> ListInstanceEventsResponse:
        filters = [events.of_types(request.type), events.about_kind(request.kind, name_contains=request.name)]
        found, pagination = await self._page(request, kinds.EVENTS, events.ORDER, filters, call)
        return ListInstanceEventsResponse(items=[events.event_view(obj) for obj in found], pagination=pagination)

    async def list_instance_event_kinds(
        self, request: ListInstanceEventKindsRequest, call: Call
    ) -> ListInstanceEventKindsResponse:
        visible = call.sight.within(request.instance)
        found = await events.kinds_in(self._operations.reach.instance(request.instance), visible, call)
        return ListInstanceEventKindsResponse(data=sorted(found))

    async def list_pods_for_member_cluster(
        self, request: ListPodsForMemberClusterRequest, call: Call
    ) -> ListPodsForMemberClusterResponse:
        client = self._operations.reach.instance(request.instance)
        filters = [pods.in_phase(request.phase), await pods.belonging(client, request, call)]
        found, pagination = await self._page(
            request,
            kinds.PODS,
            pods.ORDER,
            filters,
            call,
            cluster=request.cluster,
            name_contains=request.name,
            label_selector=request.label_selector or None,
            field_selector=request.field_selector or None,
        )
        items = [pods.pod_view(obj, cluster=request.cluster) for obj in found]
        return ListPodsForMemberClusterResponse(items=items, pagination=pagination)

    async def _page(
        self,
        request: Any,
        resource: Resource,
        order: Order[Object],
        filters: list[Predicate | None],
        call: Call,
        **others: Any,
    ) -> tuple[list[Object], Pagination]:
        query = Query(
            instance=request.instance,
            resource=resource,
            visible=call.sight.within(request.instance),
            namespace=getattr(request, "namespace", "") or None,
            window=Window.of(request),
            key=order.key(request),
            descending=is_descending(request),
            filters=[holds for holds in filters if holds is not None],
            **others,
        )
        found = await self._operations.reader.query(query, call)
        return list(found.items), query.window.pagination(found.total)
