"""Reads that the index answers instead of the instance: get, list, and the beginning of a watch.

It answers what bindings grant, and only where the RBAC that they mean inside grants the same: whoever is asked, the
answer is one. It never refuses anybody. Whatever is granted inside by hand, asked for in a form that the index does not
have, or wanted from the instance itself (`Cache-Control: no-cache`) is `PassThrough`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from kairship.access import Extent
from kairship.access.kinds import is_custom
from kairship.apiserver.proxy.asking import Asked
from kairship.apiserver.proxy.columns import Columns
from kairship.apiserver.proxy.known_kinds import KnownKinds
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.proxy.place import Place
from kairship.apiserver.proxy.target import Target
from kairship.apiserver.services.resources.index_reader import Collected
from kairship.index import PassThrough, ReadRequest, Splicer, WatchRequest, kind_called, kind_name
from kairship.index.accept import Format, wanted
from kairship.index.opening import IndexAccess, Opened
from kairship.index.tables import Layout
from kairship.kube import Client, Resource, kinds

_FRESH = frozenset({"no-cache", "no-store", "max-age=0"})


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What to send, while the context that gave it lasts."""

    status: int
    headers: dict[str, str]
    body: AsyncGenerator[bytes]
    whole: bytes | None = None
    """The body, if it is in one piece."""
    from_index: bool = True


class _Definition(msgspec.Struct):
    class Spec(msgspec.Struct):
        scope: str

    spec: Spec


class IndexedReads:
    def __init__(self, index: IndexAccess, collected: Collected) -> None:
        self._index = index
        self._collected = collected
        self._kinds = KnownKinds()
        self._columns = Columns()

    def concerns(self, passing: Passing) -> bool:
        """Whether the index might have the answer."""
        asked = passing.asked
        return isinstance(asked, Asked) and asked.reads and _is_for_the_index(passing)

    async def single(self, passing: Passing, connect: Callable[[], Client]) -> Answer:
        """As `answer`, for one object: it is whole, and needs no context."""
        opened, asked, place = await self._found(passing)
        layout = await self._columns.layout(place, connect) if _wants_table(passing) else None
        reply = await opened.reads.single(_request(passing, asked, place, layout))
        return Answer(status=reply.status, headers=reply.headers, body=reply.body, whole=reply.whole)

    @asynccontextmanager
    async def answer(self, passing: Passing, connect: Callable[[], Client]) -> AsyncIterator[Answer]:
        """For what it `concerns`. Raises `PassThrough` at its beginning.

        `connect` gives the client of the instance, as the caller.
        """
        opened, asked, place = await self._found(passing)
        if asked.watches:
            async with self._watch(passing, place, opened.splicer, connect) as answer:
                yield answer
            return
        layout = await self._columns.layout(place, connect) if _wants_table(passing) else None
        async with opened.reads.answer(_request(passing, asked, place, layout)) as reply:
            yield Answer(status=reply.status, headers=reply.headers, body=reply.body, whole=reply.whole)

    async def _found(self, passing: Passing) -> tuple[Opened, Asked, Place]:
        asked = passing.asked
        if not isinstance(asked, Asked):
            raise PassThrough("not for the index")
        opened = self._index.opened
        if opened is None:
            raise PassThrough("there is no index")
        instance, cluster = self._clusters(passing.target)
        kind = kind_called(asked.attributes.resource, asked.attributes.group)
        resource = self._kinds.remembered(cluster, kind) or await self._kinds.find(opened.current.index, cluster, kind)
        place = Place(
            current=opened.current,
            cluster=cluster,
            instance=instance,
            member=passing.target.cluster,
            resource=resource,
            namespace=_namespace(asked, resource),
        )
        if passing.admitted.extent is not Extent.WHOLE or is_custom(place.resource.group):
            await self._require_same_inside(passing, asked, place)
        return opened, asked, place

    @asynccontextmanager
    async def _watch(
        self, passing: Passing, place: Place, splicer: Splicer, connect: Callable[[], Client]
    ) -> AsyncIterator[Answer]:
        request = WatchRequest(
            place.cluster,
            place.reached,
            passing.parameters,
            place.namespace,
            passing.request.headers.get("Accept", ""),
        )
        if not request.wants_initial_events or request.plan() is None:
            raise PassThrough("a watch that the index has no part in")
        async with AsyncExitStack() as held:
            # What the caller wrote a moment ago has to be in the beginning.
            await place.current.moment(
                held, place.cluster, place.resource, caller=passing.caller.id, namespace=place.namespace
            )
        async with splicer.watch(connect(), request) as reply:
            yield Answer(status=reply.status, headers=reply.headers, body=reply.body, from_index=reply.spliced)

    def _clusters(self, target: Target) -> tuple[str, str]:
        """Those of the instance, and of what is read, as the index knows them."""
        instance = self._collected.instance(target.instance)
        cluster = instance if target.cluster is None else self._collected.member(target.instance, target.cluster)
        if instance is None or cluster is None:
            raise PassThrough("it is not collected")
        return instance, cluster

    async def _require_same_inside(self, passing: Passing, asked: Asked, place: Place) -> None:
        """Raises `PassThrough` unless RBAC inside says yes as well."""
        extent, current = passing.admitted.extent, place.current
        if extent is None:
            raise PassThrough("not granted by bindings, or not in the same way inside")
        if is_custom(place.resource.group):
            # Rules about kinds of somebody's own are written for those that are defined in the instance.
            _, row = await current.get(place.instance, kinds.CRDS, kind_name(place.resource), caller=None)
            if row is None or _scope(row.body) is not place.resource.namespaced:
                raise PassThrough("the kind is not defined in the instance")
        if extent is Extent.NAMESPACE:
            # Rules about one namespace are written into it: without it there are none.
            _, row = await current.get(place.instance, kinds.NAMESPACES, asked.attributes.namespace, caller=None)
            if row is None:
                raise PassThrough("there is no such namespace in the instance")


def _namespace(asked: Asked, resource: Resource) -> str | None:
    """In which the kind is asked for."""
    about = asked.attributes
    if resource.version != asked.version:
        raise PassThrough("the kind is not followed in this version")
    namespace = None if (about.group, about.resource) == ("", "namespaces") else about.namespace or None
    in_its_place = (namespace is not None or not asked.name) if resource.namespaced else namespace is None
    if not in_its_place:
        raise PassThrough("a path that means nothing, which the cluster says itself")
    return namespace


def _wants_table(passing: Passing) -> bool:
    return wanted(passing.request.headers.get("Accept", "")) is Format.TABLE


def _request(passing: Passing, asked: Asked, place: Place, layout: Layout | None) -> ReadRequest:
    return ReadRequest(
        place.cluster,
        place.resource,
        passing.parameters,
        passing.caller.id,
        namespace=place.namespace,
        name=asked.name or None,
        accept=passing.request.headers.get("Accept", ""),
        layout=layout,
    )


def _is_for_the_index(passing: Passing) -> bool:
    request, line = passing.request, passing.line
    if request.method != "GET" or request.body_exists or passing.upgrades or line.target.path.endswith("/"):
        return False
    wishes = request.headers.get("Cache-Control")
    if wishes and not _FRESH.isdisjoint(part.strip().lower() for part in wishes.split(",")):
        return False
    # Servers differ in what they make of these.
    return ";" not in line.query and not line.repeats


def _scope(definition: bytes) -> bool:
    """Whether what it defines is in namespaces."""
    return msgspec.json.decode(definition, type=_Definition).spec.scope == "Namespaced"
