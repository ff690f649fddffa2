"""Where nodes are read: in the index, and in the cluster itself whenever the index cannot answer.

What a caller changes here is noted, so that its next read shows it.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, aclosing

import msgspec

from kairship.gen.kairship.kpanda.v1alpha1.node_pb import Node
from kairship.index import (
    NOT_NOTED,
    BadSelectorError,
    BrokenIndexError,
    Current,
    PassThrough,
    Query,
    Scope,
    Written,
    kind_name,
    note_write,
    parse_labels,
    plan,
    revision_told,
)
from kairship.instances.pool import Pool
from kairship.kpanda.services.nodes.view import node_view
from kairship.kpanda.services.reach import client_of
from kairship.kube import NotFound, Object, kinds
from kairship.rpc import errors
from kairship.rpc.calls import Call, patience
from kairship.rpc.own_kinds import SeenCluster

_KIND = kind_name(kinds.NODES)
_PAGE = 500

Holds = Callable[[Node], bool]


class NodeReader:
    def __init__(self, current: Current, pool: Pool) -> None:
        self._current = current
        self._pool = pool

    async def all(self, cluster: SeenCluster, selector: str, holds: Holds, call: Call) -> list[Node]:
        """Those with these labels for which `holds` is true, in no order."""
        try:
            async with asyncio.timeout(patience(call)):
                return await self._list_in_index(cluster, selector, holds, call)
        except (PassThrough, BadSelectorError, BrokenIndexError):
            return await self._list_in_cluster(cluster, selector, holds, call)

    async def get(self, cluster: SeenCluster, name: str, call: Call) -> Node:
        try:
            partition, row = await self._current.get(cluster.metadata.uid, kinds.NODES, name, caller=call.caller.id)
        except PassThrough:
            row = None
        if row is None:
            return _shown(await self.now(cluster, name, call), cluster)
        call.note_age(self._current.age(partition))
        return _shown(msgspec.json.decode(row.body), cluster)

    async def now(self, cluster: SeenCluster, name: str, call: Call) -> Object:
        """As it is in the cluster at this moment."""
        call.note_age(0.0)
        try:
            return await client_of(self._pool, cluster.metadata.name).get(kinds.NODES, name, timeout=patience(call))
        except NotFound:
            raise errors.NotFound(f"cluster {cluster.metadata.name} has no node {name}") from None

    async def written(self, cluster: SeenCluster, node: Object, call: Call) -> Node:
        """A node as a write has left it; the next read by this caller is not older."""
        revision = revision_told(node["metadata"].get("resourceVersion", ""))
        written = Written(cluster.metadata.uid, _KIND, revision)
        if not await note_write(self._current.writes, call.caller.id, written, request_id=call.request_id):
            call.warn(NOT_NOTED)
        return _shown(node, cluster)

    async def _list_in_index(self, cluster: SeenCluster, selector: str, holds: Holds, call: Call) -> list[Node]:
        uid = cluster.metadata.uid
        asked = plan(Query(scopes=(Scope(uid),), kinds=frozenset((_KIND,)), labels=parse_labels(selector)))

        def fitting(bodies: list[bytes]) -> list[Node]:
            shown = (_shown(msgspec.json.decode(body), cluster) for body in bodies)
            return [node for node in shown if holds(node)]

        found: list[Node] = []
        async with AsyncExitStack() as held:
            snapshot, partition = await self._current.moment(held, uid, kinds.NODES, caller=call.caller.id)
            async with aclosing(snapshot.bodies(asked)) as batches:
                async for batch in batches:
                    found += await asyncio.to_thread(fitting, batch)
        call.note_age(self._current.age(partition))
        return found

    async def _list_in_cluster(self, cluster: SeenCluster, selector: str, holds: Holds, call: Call) -> list[Node]:
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
