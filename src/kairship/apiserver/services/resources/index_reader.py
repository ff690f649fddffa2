"""Reads objects from the index, and from the instance itself whenever the index cannot answer.

An instance's own objects are in the index under the uid of its virtual cluster, those of a member cluster under the uid
of that cluster. If the index knows the order of a page, and no filter of ours has to examine the objects, the index
finds, sorts and counts the page. Otherwise all matches are decoded in threads, and only the page is kept.
"""

import asyncio
import heapq
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Protocol, TypeVar

import msgspec

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
from kairship.index import CurrentIndex, PassThrough, ReadThrough, Snapshot, Sort, index_or_cluster
from kairship.kube import Object, Resource, kinds
from kairship.rpc.calls import Call, patience

T = TypeVar("T")

_ONE_BY_ONE = 100


class Collected(Protocol):
    """The uids under which the index has the objects of instances and member clusters."""

    def instance(self, name: str) -> str | None:
        """The uid of an instance's virtual cluster; None if it is not collected."""

    def member(self, instance: str, cluster: str) -> str | None:
        """The uid of a member cluster of an instance; None if it is not collected."""


def collected_as(collected: Collected, instance: str, member: str | None) -> str | None:
    """The uid of the instance, or of one of its members."""
    return collected.member(instance, member) if member else collected.instance(instance)


class IndexReader:
    """`current` returns the index to read from, and None while there is none. `live` reads from the instance."""

    def __init__(self, current: Callable[[], CurrentIndex | None], collected: Collected, live: Reader) -> None:
        self._index = ReadThrough(current)
        self._collected = collected
        self._live = live

    async def get(self, instance: str, resource: Resource, name: str, *, namespace: str | None, call: Call) -> Object:
        async def from_index() -> Object:
            row = await self._index.get(self._cluster(instance), resource, _key(resource, name, namespace), call)
            return {"apiVersion": resource.api_version, "kind": resource.kind, **msgspec.json.decode(row.body)}

        return await index_or_cluster(
            from_index, lambda: self._live.get(instance, resource, name, namespace=namespace, call=call)
        )

    async def query(self, query: Query, call: Call) -> Found:
        async def from_index() -> Found:
            async with asyncio.timeout(patience(call)), AsyncExitStack() as held:
                cluster = self._cluster(query.instance, query.cluster)
                index_query = _index_query(query, cluster)
                snapshot, _ = await self._index.snapshot(held, cluster, query.resource, call, namespace=query.namespace)
                if query.sort is not None and not query.filters:
                    return await _sorted_by_index(snapshot, query, index_query, query.sort)
                return await _sorted_here(snapshot, query, index_query)

        return await index_or_cluster(from_index, lambda: self._live.query(query, call))

    async def bindings_of(
        self, instance: str, objects: Sequence[Object], *, namespace: str | None, call: Call
    ) -> Mapping[str, Binding]:
        async def from_index() -> Mapping[str, Binding]:
            if len(objects) > _ONE_BY_ONE:
                found = await self._all(instance, kinds.RESOURCE_BINDINGS, namespace, Binding, call)
            else:
                found = [binding for obj in objects if (binding := await self._binding_of(instance, obj, call))]
            return {binding.spec.resource.uid: binding for binding in found}

        return await index_or_cluster(
            from_index, lambda: self._live.bindings_of(instance, objects, namespace=namespace, call=call)
        )

    async def providers(self, instance: str, call: Call) -> Mapping[str, str]:
        async def from_index() -> Mapping[str, str]:
            found = await self._all(instance, kinds.CLUSTERS, None, Member, call)
            return {member.metadata.name: member.spec.provider for member in found}

        return await index_or_cluster(from_index, lambda: self._live.providers(instance, call))

    async def _binding_of(self, instance: str, obj: Object, call: Call) -> Binding | None:
        name, resource = binding_name(obj["metadata"]["name"], obj["kind"]), kinds.RESOURCE_BINDINGS
        key = _key(resource, name, obj["metadata"]["namespace"])
        row = await self._index.find(self._cluster(instance), resource, key, call)
        return None if row is None else msgspec.json.decode(row.body, type=Binding)

    async def _all(
        self, instance: str, resource: Resource, namespace: str | None, shape: type[T], call: Call
    ) -> list[T]:
        cluster = self._cluster(instance)
        query = index.Query(
            scopes=(index.VisibleScope(cluster),), kinds=frozenset((index.kind_name(resource),)), namespace=namespace
        )
        decoder = msgspec.json.Decoder(shape)
        found: list[T] = []
        bodies = self._index.bodies(cluster, resource, index.plan(query), call, namespace=namespace)
        async with aclosing(bodies) as batches:
            async for batch in batches:
                found += await asyncio.to_thread(lambda some: [decoder.decode(body) for body in some], batch)
        return found

    def _cluster(self, instance: str, member: str = "") -> str:
        uid = collected_as(self._collected, instance, member)
        if uid is None:
            raise PassThrough("the cluster is not collected")
        return uid


class NotedWrites:
    """Notes what services write into instances in the write log of the index."""

    def __init__(self, current: Callable[[], CurrentIndex | None], collected: Collected) -> None:
        self._index = ReadThrough(current)
        self._collected = collected

    async def written(self, instance: str, resource: Resource, obj: Object, call: Call) -> None:
        await self._index.note_written(self._collected.instance(instance), resource, obj, call)

    async def deleted(self, instance: str, resource: Resource, uid: str, call: Call) -> None:
        await self._index.note(self._collected.instance(instance), resource, call, deleted_uid=uid)

    async def several(self, instance: str, resources: Sequence[Resource], call: Call) -> None:
        for resource in resources:
            await self._index.note(self._collected.instance(instance), resource, call)


def _key(resource: Resource, name: str, namespace: str | None) -> str:
    return f"{namespace}/{name}" if resource.namespaced else name


def _index_query(query: Query, cluster: str) -> index.Query:
    """Raises `BadSelectorError`; then the instance refuses the selector in its own words."""
    visible = query.visible
    scope = index.VisibleScope(cluster, namespaces=visible.namespaces, reserved=visible.reserved)
    return index.Query(
        # Whether the caller may list a cluster-scoped kind of the instance was decided before.
        scopes=(scope if query.resource.namespaced else index.VisibleScope(cluster),),
        kinds=frozenset((index.kind_name(query.resource),)),
        namespace=query.namespace,
        labels=index.parse_labels(query.label_selector or ""),
        fields=index.parse_fields(query.field_selector or ""),
        name_contains=query.name_contains or None,
        descending=query.descending,
    )


async def _sorted_by_index(snapshot: Snapshot, query: Query, index_query: index.Query, sort: Sort) -> Found:
    total = await snapshot.count(index.plan(index_query))
    refuse_too_many(query, total)
    window = query.window
    end = window.end
    page = msgspec.structs.replace(
        index_query, sort=sort, limit=MOST if end is None else window.size, skip=0 if end is None else end - window.size
    )
    items: list[Object] = []
    async with aclosing(snapshot.bodies(index.plan(page))) as batches:
        async for batch in batches:
            items += await asyncio.to_thread(_decoded, batch, query.resource)
    return Found(items, total)


async def _sorted_here(snapshot: Snapshot, query: Query, index_query: index.Query) -> Found:
    needed = query.window.end or MOST
    kept: list[Object] = []
    total = 0
    pick = heapq.nlargest if query.descending else heapq.nsmallest
    async with aclosing(snapshot.bodies(index.plan(index_query))) as batches:
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
