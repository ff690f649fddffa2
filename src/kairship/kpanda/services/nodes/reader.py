"""Reads nodes from the index, and from the cluster itself whenever the index cannot answer.

What a caller changes is noted, so that the caller's next read shows it.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from kairship.gen.kairship.kpanda.v1alpha1.node_pb import Node
from kairship.index import (
    CurrentIndex,
    Query,
    ReadThrough,
    VisibleScope,
    index_or_cluster,
    kind_name,
    parse_labels,
    plan,
)
from kairship.instances.pool import Pool
from kairship.kpanda.services.cluster_client import client_of
from kairship.kpanda.services.nodes.view import node_view
from kairship.kube import NotFound, Object, kinds
from kairship.rpc import errors
from kairship.rpc.calls import Call, patience
from kairship.rpc.resource_cache import SeenCluster

_KIND = kind_name(kinds.NODES)
_PAGE = 500

Predicate = Callable[[Node], bool]


class NodeReader:
    def __init__(self, current: CurrentIndex, pool: Pool) -> None:
        self._index = ReadThrough(lambda: current)
        self._pool = pool

    async def all(self, cluster: SeenCluster, selector: str, holds: Predicate, call: Call) -> list[Node]:
        """The nodes that match a label selector and for which `holds` is true, in no particular order."""

        async def from_index() -> list[Node]:
            async with asyncio.timeout(patience(call)):
                return await self._list_in_index(cluster, selector, holds, call)

        return await index_or_cluster(from_index, lambda: self._list_in_cluster(cluster, selector, holds, call))

    async def get(self, cluster: SeenCluster, name: str, call: Call) -> Node:
        async def from_index() -> Node:
            row = await self._index.get(cluster.metadata.uid, kinds.NODES, name, call)
            return _shown(msgspec.json.decode(row.body), cluster)

        async def from_cluster() -> Node:
            return _shown(await self.read_latest(cluster, name, call), cluster)

        return await index_or_cluster(from_index, from_cluster)

    async def read_latest(self, cluster: SeenCluster, name: str, call: Call) -> Object:
        """The node as it is in the cluster at this moment."""
        call.note_age(0.0)
        try:
            return await client_of(self._pool, cluster.metadata.name).get(kinds.NODES, name, timeout=patience(call))
        except NotFound:
            raise errors.NotFound(f"cluster {cluster.metadata.name} has no node {name}") from None

    async def written(self, cluster: SeenCluster, node: Object, call: Call) -> Node:
        """The view of a node as a write has left it. The caller's next read is not older."""
        await self._index.note_written(cluster.metadata.uid, kinds.NODES, node, call)
        return _shown(node, cluster)

    async def _list_in_index(self, cluster: SeenCluster, selector: str, holds: Predicate, call: Call) -> list[Node]:
        uid = cluster.metadata.uid
        query = Query(scopes=(VisibleScope(uid),), kinds=frozenset((_KIND,)), labels=parse_labels(selector))

        def matching(bodies: list[bytes]) -> list[Node]:
            shown = (_shown(msgspec.json.decode(body), cluster) for body in bodies)
            return [node for node in shown if holds(node)]

        found: list[Node] = []
        async with aclosing(self._index.bodies(uid, kinds.NODES, plan(query), call)) as batches:
            async for batch in batches:
                found += await asyncio.to_thread(matching, batch)
        return found

    async def _list_in_cluster(self, cluster: SeenCluster, selector: str, holds: Predicate, call: Call) -> list[Node]:
        call.note_age(0.0)
        found: list[Node] = []
        pages = client_of(self._pool, cluster.metadata.name).pages(
            kinds.NODES, label_selector=selector or None, limit=_PAGE, timeout=patience(call)
        )
        async with aclosing(pages):
            async for page in pages:
                shown = (_shown(node, cluster) for node in page.items)
                found += (node for node in shown if holds(node))
        return found


def _shown(node: Object, cluster: SeenCluster) -> Node:
    return node_view(node, cluster=cluster.metadata.name)
