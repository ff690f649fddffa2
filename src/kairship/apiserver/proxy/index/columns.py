"""The columns of tables: a custom resource's are in its definition, a built-in kind's are asked of the cluster.

What a cluster answers is cached for as long as the kind is followed without interruption: an upgrade of the control
plane interrupts it.
"""

from collections.abc import Callable

import msgspec

from kairship.apiserver.proxy.index.read_source import ReadSource
from kairship.index import BrokenIndexError, NoSuchClusterError, PassThrough, kind_name
from kairship.index.tables import Layout, built_in, of_definition
from kairship.kube import Client, KubeError, kinds

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_TIMEOUT = 5.0
_MOST_CACHED = 4096
_LARGEST_TABLE = 64 << 10
"""Bytes of a table without rows. What a hostile member says is its columns is kept only if it is that small."""


class _Table(msgspec.Struct, rename="camel"):
    column_definitions: msgspec.Raw


class Columns:
    def __init__(self) -> None:
        # By cluster and kind: what the layout was made from (a definition's hash, or an epoch), and the layout.
        self._cached: dict[tuple[str, str], tuple[int, Layout | None]] = {}

    async def layout(self, source: ReadSource, connect: Callable[[], Client]) -> Layout:
        """`connect` gives the instance's client, as the caller. Raises `PassThrough` if no layout is known."""
        try:
            found = await self._from_definition(source) or await self._from_cluster(source, connect)
        except (NoSuchClusterError, BrokenIndexError, KubeError, msgspec.MsgspecError) as error:
            raise PassThrough(str(error)) from error
        if found is None:
            raise PassThrough("the columns of the kind are not known")
        return found

    async def _from_definition(self, source: ReadSource) -> Layout | None:
        resource = source.resource
        if "." not in resource.group:
            return None
        _, row = await source.current.get(source.cluster, kinds.CRDS, kind_name(resource), caller=None)
        if row is None:
            return None
        key, version = (source.cluster, kind_name(resource)), hash(row.body)
        cached = self._cached.get(key)
        if cached is None or cached[0] != version:
            cached = self._remember(key, version, of_definition(row.body, resource.version))
        if cached[1] is None:
            raise PassThrough("the definition has columns that are not understood")
        return cached[1]

    async def _from_cluster(self, source: ReadSource, connect: Callable[[], Client]) -> Layout | None:
        kind = kind_name(source.resource)
        async with source.current.index.snapshot(source.cluster) as snapshot:
            partition = await snapshot.partition(kind)
        if partition is None:
            raise PassThrough("the kind is not followed at present")
        key, cached = (source.cluster, kind), self._cached.get((source.cluster, kind))
        if cached is None or cached[0] != partition.epoch:
            reply = await connect().request(
                "GET",
                source.upstream_resource.path(namespace=source.namespace),
                params={"limit": "1", "includeObject": "None"},
                headers={"Accept": _TABLE},
                timeout=_TIMEOUT,
                largest=_LARGEST_TABLE,
            )
            if reply.status != 200:
                raise PassThrough("the cluster prints no table")
            columns = msgspec.json.decode(reply.body, type=_Table).column_definitions
            cached = self._remember(key, partition.epoch, built_in(kind, bytes(columns)))
        return cached[1]

    def _remember(self, key: tuple[str, str], version: int, layout: Layout | None) -> tuple[int, Layout | None]:
        if len(self._cached) >= _MOST_CACHED:
            del self._cached[next(iter(self._cached))]
        cached = self._cached[key] = (version, layout)
        return cached
