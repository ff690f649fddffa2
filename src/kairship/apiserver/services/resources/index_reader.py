"""Reading from the index; whatever it cannot answer now is read from the instance itself.

An instance's own objects are in the index under the uid of its virtual cluster, those of a member cluster under the
uid of that cluster. A page whose order the index knows and that no filter of ours has to look at is found, sorted and
counted there. Otherwise all that match are gone through, decoded in threads, and only the page is kept.
"""

import asyncio
import heapq
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any, Protocol, TypeVar

import msgspec
import structlog

from kairship import index
from kairship.apiserver.services.resources.reader import (
    MOST,
    Binding,
    Found,
    Member,
    Query,
    Reader,
    binding_name,
    fits,
    refuse_too_many,
)
from kairship.index import BadSelectorError, BrokenIndexError, Current, Moment, PassThrough, Sort, Written
from kairship.kube import Object, Resource, kinds
from kairship.rpc.calls import Call, patience

T = TypeVar("T")

log = structlog.get_logger(__name__)

_ONE_BY_ONE = 100


class Collected(Protocol):
    """Under which uid the index has what is asked for."""

    def instance(self, name: str) -> str | None:
        """None if it is not collected."""

    def member(self, instance: str, cluster: str) -> str | None:
        """Of a cluster that is a member of the instance."""


def collected_as(collected: Collected, instance: str, member: str | None) -> str | None:
    """The uid of the instance, or of a member of it."""
    return collected.member(instance, member) if member else collected.instance(instance)


class IndexReader:
    """`current` says through which index to read; None while there is none."""

    def __init__(self, current: Callable[[], Current | None], collected: Collected, live: Reader) -> None:
        self._current = current
        self._collected = collected
        self._live = live

    async def get(self, instance: str, resource: Resource, name: str, *, namespace: str | None, call: Call) -> Object:
        try:
            obj = await self._get(instance, resource, name, namespace, dict[str, Any], call)
        except PassThrough:
            obj = None
        if obj is None:
            # Of what is not there the instance says so itself, in its own words.
            return await self._live.get(instance, resource, name, namespace=namespace, call=call)
        return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}

    async def query(self, query: Query, call: Call) -> Found:
        try:
            async with asyncio.timeout(patience(call)), AsyncExitStack() as held:
                cluster = self._cluster(query.instance, query.cluster)
                asked = _asked(query, cluster)
                moment = await self._moment(held, cluster, query.resource, query.namespace, call)
                if query.sort is not None and not query.filters:
                    return await _sorted_there(moment, query, asked, query.sort)
                return await _sorted_here(moment, query, asked)
        except (PassThrough, BadSelectorError, BrokenIndexError):
            return await self._live.query(query, call)

    async def bindings_of(
        self, instance: str, objects: Sequence[Object], *, namespace: str | None, call: Call
    ) -> Mapping[str, Binding]:
        resource = kinds.RESOURCE_BINDINGS
        try:
            if len(objects) > _ONE_BY_ONE:
                found = await self._all(instance, resource, namespace, Binding, call)
            else:
                places = (
                    (binding_name(obj["metadata"]["name"], obj["kind"]), obj["metadata"]["namespace"])
                    for obj in objects
                )
                found = [
                    binding
                    for name, place in places
                    if (binding := await self._get(instance, resource, name, place, Binding, call)) is not None
                ]
        except PassThrough:
            return await self._live.bindings_of(instance, objects, namespace=namespace, call=call)
        return {binding.spec.resource.uid: binding for binding in found}

    async def providers(self, instance: str, call: Call) -> Mapping[str, str]:
        try:
            found = await self._all(instance, kinds.CLUSTERS, None, Member, call)
        except PassThrough:
            return await self._live.providers(instance, call)
        return {member.metadata.name: member.spec.provider for member in found}

    async def _get(
        self, instance: str, resource: Resource, name: str, namespace: str | None, shape: type[T], call: Call
    ) -> T | None:
        index.refuse_partial(resource)
        key = f"{namespace}/{name}" if resource.namespaced else name
        current = self._opened()
        partition, row = await current.get(self._cluster(instance), resource, key, caller=call.caller.id)
        call.note_age(current.age(partition))
        return None if row is None else msgspec.json.decode(row.body, type=shape)

    async def _all(
        self, instance: str, resource: Resource, namespace: str | None, shape: type[T], call: Call
    ) -> list[T]:
        cluster = self._cluster(instance)
        asked = index.Query(
            scopes=(index.Scope(cluster),), kinds=frozenset((index.kind_name(resource),)), namespace=namespace
        )
        decoder = msgspec.json.Decoder(shape)
        found: list[T] = []
        try:
            async with AsyncExitStack() as held:
                snapshot, _ = await self._moment(held, cluster, resource, namespace, call)
                async with aclosing(snapshot.bodies(index.plan(asked))) as batches:
                    async for batch in batches:
                        found += await asyncio.to_thread(lambda some: [decoder.decode(body) for body in some], batch)
        except BrokenIndexError as error:
            raise PassThrough(str(error)) from error
        return found

    async def _moment(
        self, held: AsyncExitStack, cluster: str, resource: Resource, namespace: str | None, call: Call
    ) -> Moment:
        index.refuse_partial(resource)
        current = self._opened()
        moment = await current.moment(held, cluster, resource, caller=call.caller.id, namespace=namespace)
        call.note_age(current.age(moment.partition))
        return moment

    def _opened(self) -> Current:
        current = self._current()
        if current is None:
            raise PassThrough("there is no index")
        return current

    def _cluster(self, instance: str, member: str = "") -> str:
        uid = collected_as(self._collected, instance, member)
        if uid is None:
            raise PassThrough("it is not collected")
        return uid


class NotedWrites:
    """The write log of the index, told of what services write into instances."""

    def __init__(self, current: Callable[[], Current | None], collected: Collected) -> None:
        self._current = current
        self._collected = collected

    async def written(self, instance: str, resource: Resource, obj: Object, call: Call) -> None:
        revision = index.revision_told(obj["metadata"].get("resourceVersion", ""))
        await self._note(instance, resource, call, revision=revision)

    async def deleted(self, instance: str, resource: Resource, uid: str, call: Call) -> None:
        await self._note(instance, resource, call, deleted_uid=uid)

    async def several(self, instance: str, resources: Sequence[Resource], call: Call) -> None:
        for resource in resources:
            await self._note(instance, resource, call)

    async def _note(
        self, instance: str, resource: Resource, call: Call, *, revision: int = 0, deleted_uid: str = ""
    ) -> None:
        current, cluster = self._current(), self._collected.instance(instance)
        if current is not None and cluster is not None:
            written = Written(cluster, index.kind_name(resource), revision, deleted_uid)
            if not await index.note_write(current.writes, call.caller.id, written, request_id=call.request_id):
                call.warn(index.NOT_NOTED)


def _asked(query: Query, cluster: str) -> index.Query:
    """Raises `BadSelectorError`: then the instance refuses it, in its own words."""
    visible = query.visible
    scope = index.Scope(cluster, namespaces=visible.namespaces, reserved=visible.reserved)
    return index.Query(
        # What is in no namespace is of the instance as a whole: whether it may be listed was decided before.
        scopes=(scope if query.resource.namespaced else index.Scope(cluster),),
        kinds=frozenset((index.kind_name(query.resource),)),
        namespace=query.namespace,
        labels=index.parse_labels(query.label_selector or ""),
        fields=index.parse_fields(query.field_selector or ""),
        name_contains=query.name_contains or None,
        descending=query.descending,
    )


async def _sorted_there(moment: Moment, query: Query, asked: index.Query, sort: Sort) -> Found:
    total = await moment.snapshot.count(index.plan(asked))
    refuse_too_many(query, total)
    window = query.window
    end = window.end
    page = msgspec.structs.replace(
        asked, sort=sort, limit=MOST if end is None else window.size, skip=0 if end is None else end - window.size
    )
    items: list[Object] = []
    async with aclosing(moment.snapshot.bodies(index.plan(page))) as batches:
        async for batch in batches:
            items += await asyncio.to_thread(_decoded, batch, query.resource)
    return Found(items, total)


async def _sorted_here(moment: Moment, query: Query, asked: index.Query) -> Found:
    needed = query.window.end or MOST
    kept: list[Object] = []
    total = 0
    pick = heapq.nlargest if query.descending else heapq.nsmallest
    async with aclosing(moment.snapshot.bodies(index.plan(asked))) as batches:
        async for batch in batches:
            fitting = await asyncio.to_thread(_fitting, batch, query)
            total += len(fitting)
            refuse_too_many(query, total)
            kept = pick(needed, [*kept, *fitting], key=query.key)
    return Found(query.window.cut(kept), total)


def _fitting(bodies: Sequence[bytes], query: Query) -> list[Object]:
    return [obj for obj in _decoded(bodies, query.resource) if fits(obj, query)]


def _decoded(bodies: Sequence[bytes], resource: Resource) -> list[Object]:
    return [{"apiVersion": resource.api_version, "kind": resource.kind, **msgspec.json.decode(body)} for body in bodies]
