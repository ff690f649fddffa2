"""Reading straight from an instance, page by page, keeping no more than the page that is asked for.

An API server neither sorts nor searches by part of a name, so everything is gone through for every list. That is what
the index is for; this is what there is when it cannot answer, and bounded all the same.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from kairship.apiserver.services.reach import InMember, Reach
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
    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def get(self, instance: str, resource: Resource, name: str, *, namespace: str | None, call: Call) -> Object:
        call.note_age(0.0)
        return await self._reach.instance(instance).get(resource, name, namespace=namespace, timeout=patience(call))

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
        """Of the namespaces that the caller may see, and no others: what is not read cannot be told."""
        resource = InMember.at(query.cluster, query.resource) if query.cluster else query.resource
        namespaces = query.visible.to_list(query.namespace) if query.resource.namespaced else [None]
        for namespace in namespaces:
            pages = self._reach.instance(query.instance).pages(
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
        client = self._reach.instance(instance)
        if len(objects) <= _ONE_BY_ONE:
            found = await asyncio.gather(*(_binding(client, obj, timeout) for obj in objects))
            bindings = [binding for binding in found if binding is not None]
        else:
            page = await client.list(kinds.RESOURCE_BINDINGS, namespace=namespace, as_type=Binding, timeout=timeout)
            bindings = page.items
        return {binding.spec.resource.uid: binding for binding in bindings}

    async def providers(self, instance: str, call: Call) -> Mapping[str, str]:
        page = await self._reach.instance(instance).list(kinds.CLUSTERS, as_type=Member, timeout=patience(call))
        return {cluster.metadata.name: cluster.spec.provider for cluster in page.items}


async def _binding(client: Client, obj: Object, timeout: float) -> Binding | None:
    """By the name that Karmada gives it. Whether it is this object's, and not a namesake's, its uid tells."""
    metadata = obj["metadata"]
    try:
        return await client.get(
            kinds.RESOURCE_BINDINGS,
            binding_name(metadata["name"], obj["kind"]),
            namespace=metadata["namespace"],
            as_type=Binding,
            timeout=timeout,
        )
    except NotFound:
        return None
