"""The columns of tables: those of custom resources are in their definition, those of other kinds in the cluster.

What a cluster says is remembered for as long as the kind is followed without interruption: a control plane of another
version has interrupted it.
"""

from collections.abc import Callable

import msgspec

from kairship.apiserver.proxy.place import Place
from kairship.index import BrokenIndexError, NoSuchClusterError, PassThrough, kind_name
from kairship.index.tables import Layout, built_in, of_definition
from kairship.kube import Client, KubeError, kinds

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PATIENCE = 5.0
_MOST = 4096


class _Table(msgspec.Struct, rename="camel"):
    column_definitions: msgspec.Raw


class Columns:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[int, Layout | None]] = {}

    async def layout(self, place: Place, connect: Callable[[], Client]) -> Layout:
        """Raises `PassThrough` if the kind is not printed here."""
        try:
            found = await self._defined(place) or await self._told(place, connect)
        except (NoSuchClusterError, BrokenIndexError, KubeError, msgspec.MsgspecError) as error:
            raise PassThrough(str(error)) from error
        if found is None:
            raise PassThrough("a table that is not known")
        return found

    async def _defined(self, place: Place) -> Layout | None:
        resource = place.resource
        if "." not in resource.group:
            return None
        _, row = await place.current.get(place.cluster, kinds.CRDS, kind_name(resource), caller=None)
        if row is None:
            return None
        key, mark = (place.cluster, kind_name(resource)), hash(row.body)
        known = self._known.get(key)
        if known is None or known[0] != mark:
            known = self._remember(key, mark, of_definition(row.body, resource.version))
        if known[1] is None:
            raise PassThrough("columns that are defined in a way that is not understood")
        return known[1]

    async def _told(self, place: Place, connect: Callable[[], Client]) -> Layout | None:
        kind = kind_name(place.resource)
        async with place.current.index.snapshot(place.cluster) as snapshot:
            partition = await snapshot.partition(kind)
        if partition is None:
            raise PassThrough("the kind is not followed at present")
        key, known = (place.cluster, kind), self._known.get((place.cluster, kind))
        if known is None or known[0] != partition.epoch:
            reply = await connect().request(
                "GET",
                place.reached.path(namespace=place.namespace),
                params={"limit": "1", "includeObject": "None"},
                headers={"Accept": _TABLE},
                timeout=_PATIENCE,
            )
            if reply.status != 200:
                raise PassThrough("the cluster prints no table")
            columns = msgspec.json.decode(reply.body, type=_Table).column_definitions
            known = self._remember(key, partition.epoch, built_in(kind, bytes(columns)))
        return known[1]

    def _remember(self, key: tuple[str, str], mark: int, layout: Layout | None) -> tuple[int, Layout | None]:
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        known = self._known[key] = (mark, layout)
        return known
