"""Reads objects from the instance itself, page by page, and keeps no more than the page of the request.

An API server neither sorts nor searches by part of a name, so every list reads everything. The index exists to avoid
that; this reader answers when the index cannot, and its memory is bounded all the same.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from kairship.apiserver.services.instance_clients import InstanceClients, MemberResource
from kairship.apiserver.services.resources.reader import (
    MOST,
    Binding,
    Found,
    Member,
    Query,
    binding_name,
    fits,
    refuse_too_many,
)
from kairship.kube import Client, NotFound, Object, Resource, kinds
from kairship.rpc.calls import Call, patience

_PAGE = 250
_ONE_BY_ONE = 25


class LiveReader:
    def __init__(self, clients: InstanceClients) -> None:
        self._clients = clients

    async def get(self, instance: str, resource: Resource, name: str, *, namespace: str | None, call: Call) -> Object:
        call.note_age(0.0)
        return await self._clients.instance(instance).get(resource, name, namespace=namespace, timeout=patience(call))

    async def query(self, query: Query, call: Call) -> Found:
        call.note_age(0.0)
        needed = query.window.end or MOST
        kept: list[Object] = []
        total = 0
        async with asyncio.timeout(patience(call)):
            async with aclosing(self._pages(query)) as pages:
                async for page in pages:
                    fitting = [obj for obj in page if fits(obj, query)]
                    total += len(fitting)
                    refuse_too_many(query, total)
                    kept = sorted([*kept, *fitting], key=query.key, reverse=query.descending)[:needed]
        return Found(query.window.cut(kept), total)

    async def _pages(self, query: Query) -> AsyncGenerator[list[Object]]:
        """The pages of the namespaces that the caller may see, and of no others."""
        resource = MemberResource.at(query.cluster, query.resource) if query.cluster else query.resource
        namespaces = query.visible.namespaces_to_list(query.namespace) if query.resource.namespaced else [None]
        for namespace in namespaces:
            pages = self._clients.instance(query.instance).pages(
                resource,
                namespace=namespace,
                label_selector=query.label_selector,
                field_selector=query.field_selector,
                limit=_PAGE,
            )
            async with aclosing(pages):
                async for page in pages:
                    yield page.items

    async def bindings_of(
        self, instance: str, objects: Sequence[Object], *, namespace: str | None, call: Call
    ) -> Mapping[str, Binding]:
        timeout = patience(call)
        client = self._clients.instance(instance)
        if len(objects) <= _ONE_BY_ONE:
            found = await asyncio.gather(*(_binding(client, obj, timeout) for obj in objects))
            bindings = [binding for binding in found if binding is not None]
        else:
            page = await client.typed(Binding).list(kinds.RESOURCE_BINDINGS, namespace=namespace, timeout=timeout)
            bindings = page.items
        return {binding.spec.resource.uid: binding for binding in bindings}

    async def providers(self, instance: str, call: Call) -> Mapping[str, str]:
        page = await self._clients.instance(instance).typed(Member).list(kinds.CLUSTERS, timeout=patience(call))
        return {cluster.metadata.name: cluster.spec.provider for cluster in page.items}


async def _binding(client: Client, obj: Object, timeout: float) -> Binding | None:
    """The binding with the name that Karmada gives it. The uid in it tells whether it belongs to this very object."""
    metadata = obj["metadata"]
    try:
        return await client.typed(Binding).get(
            kinds.RESOURCE_BINDINGS,
            binding_name(metadata["name"], obj["kind"]),
            namespace=metadata["namespace"],
            timeout=timeout,
        )
    except NotFound:
        return None
