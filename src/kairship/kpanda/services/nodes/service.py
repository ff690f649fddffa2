"""The service `Nodes`.

Nodes are read from the index (`reader`) and changed in the cluster itself. Labels are changed one by one. Taints are
changed by their key and effect, in the list that the cluster has at this moment, so that what a kubelet or a controller
writes meanwhile is kept.
"""

from collections.abc import Iterator
from typing import Any

from kairship.gen.kairship.kpanda.v1alpha1.node_pb import (
    CordonNodeRequest,
    GetNodeRequest,
    ListNodesRequest,
    ListNodesResponse,
    Node,
    NodeState,
    UncordonNodeRequest,
    UpdateNodeLabelsRequest,
    UpdateNodeTaintsRequest,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.instances.pool import Pool
from kairship.kpanda.credentials.secrets import FIELD_MANAGER
from kairship.kpanda.services.cluster_client import client_of
from kairship.kpanda.services.clusters.spec_fields import label_changes, taint_fields
from kairship.kpanda.services.nodes.reader import NodeReader, Predicate
from kairship.kpanda.services.visibility import Visibility
from kairship.kube import NotFound, kinds, retry_on_conflict
from kairship.rpc import errors
from kairship.rpc.calls import Call, patience
from kairship.rpc.listing import Order, page_of
from kairship.rpc.selectors import label_selector

_ATTEMPTS = 10


def _metadata(node: Node) -> ObjectMeta:
    return node.metadata or ObjectMeta()


_ORDER: Order[Node] = Order(
    name=lambda node: _metadata(node).name,
    created=lambda node: _metadata(node).creation_timestamp,
    keys={SortBy.state: lambda node: node.state.name},
)


class NodesService:
    """Implements kairship.kpanda.v1alpha1.Nodes."""

    def __init__(self, pool: Pool, reader: NodeReader, visibility: Visibility) -> None:
        self._pool = pool
        self._reader = reader
        self._visibility = visibility

    async def list_nodes(self, request: ListNodesRequest, call: Call) -> ListNodesResponse:
        cluster = await self._visibility.require(request.cluster, call)
        label_selector(request.label_selector)  # refuses a selector that is not valid
        filters = list(_filters(request))
        found = await self._reader.all(
            cluster, request.label_selector, lambda node: all(holds(node) for holds in filters), call
        )
        items, pagination = page_of(found, _ORDER, request)
        return ListNodesResponse(items=list(items), pagination=pagination)

    async def get_node(self, request: GetNodeRequest, call: Call) -> Node:
        return await self._reader.get(await self._visibility.require(request.cluster, call), request.name, call)

    async def update_node_labels(self, request: UpdateNodeLabelsRequest, call: Call) -> Node:
        labels = label_changes(request.set, request.remove)
        return await self._patch(request.cluster, request.name, {"metadata": {"labels": labels}}, call)

    async def update_node_taints(self, request: UpdateNodeTaintsRequest, call: Call) -> Node:
        wanted = taint_fields(request.set, field="set")
        named = {(taint["key"], taint["effect"]) for taint in wanted}
        gone = {(taint.key, taint.effect.name) for taint in request.remove}
        if both := sorted(named & gone):
            raise errors.InvalidArgument(violations=[("remove", f"{both[0][0]} is to be set as well: choose one")])
        cluster = await self._visibility.require(request.cluster, call)

        async def write() -> Node:
            node = await self._reader.read_latest(cluster, request.name, call)
            there: list[dict[str, Any]] = (node.get("spec") or {}).get("taints") or []
            kept = [each for each in there if (each.get("key"), each.get("effect")) not in named | gone]
            patch = {
                "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
                "spec": {"taints": [*kept, *wanted] or None},
            }
            return await self._patch(request.cluster, request.name, patch, call)

        # Kubelets write the status of their nodes all the time.
        exhausted = errors.Aborted(f"node {request.name} is being changed by others at the same time; try again")
        return await retry_on_conflict(write, attempts=_ATTEMPTS, exhausted=exhausted)

    async def cordon_node(self, request: CordonNodeRequest, call: Call) -> Node:
        return await self._patch(request.cluster, request.name, {"spec": {"unschedulable": True}}, call)

    async def uncordon_node(self, request: UncordonNodeRequest, call: Call) -> Node:
        return await self._patch(request.cluster, request.name, {"spec": {"unschedulable": None}}, call)

    async def _patch(self, cluster: str, name: str, patch: dict[str, Any], call: Call) -> Node:
        seen = await self._visibility.require(cluster, call)
        if seen.spec.virtual:
            raise errors.FailedPrecondition(
                f"cluster {cluster} stands for an instance, and its nodes cannot be changed: change the member clusters"
            )
        try:
            changed = await client_of(self._pool, cluster).patch(
                kinds.NODES, name, patch, field_manager=FIELD_MANAGER, timeout=patience(call)
            )
        except NotFound:
            raise errors.NotFound(f"cluster {cluster} has no node {name}") from None
        return await self._reader.written(seen, changed, call)


def _filters(request: ListNodesRequest) -> Iterator[Predicate]:
    if search := request.search.lower():
        yield lambda node: search in _metadata(node).name.lower()
    if request.state is not NodeState.UNSPECIFIED:
        yield lambda node: node.state is request.state
    if role := request.role:
        yield lambda node: role in node.roles
