"""Reading straight from an instance, page by page, keeping no more than the page that is asked for.

An API server neither sorts nor searches by part of a name, so everything is gone through for every list. That is what
the index is for; this is what there is without it, and bounded all the same.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

import msgspec

from kairship.apiserver.services.reach import InMember, Reach
from kairship.apiserver.services.resources.reader import Binding, Found, Query
from kairship.kube import Client, NotFound, Object, Resource, kinds
from kairship.rpc.errors import ResourceExhausted

MOST = 5000
"""So many objects a list can return at once, or reach by its pages."""

_PAGE = 250
_ONE_BY_ONE = 25


class _ClusterSpec(msgspec.Struct, frozen=True):
    provider: str = ""


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Cluster(msgspec.Struct, frozen=True):
    metadata: _Named
    spec: _ClusterSpec = _ClusterSpec()


class LiveReader:
    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def get(
        self, instance: str, resource: Resource, name: str, *, namespace: str | None, timeout: float
    ) -> Object:
        return await self._reach.instance(instance).get(resource, name, namespace=namespace, timeout=timeout)

    async def query(self, query: Query, *, timeout: float) -> Found:
        needed = query.window.end or MOST
        kept: list[Object] = []
        total = 0
        async with asyncio.timeout(timeout):
            async with aclosing(self._pages(query)) as pages:
                async for page in pages:
                    fitting = [obj for obj in page if _fits(obj, query)]
                    total += len(fitting)
                    if total > MOST and needed >= MOST:
                        raise ResourceExhausted(
                            f"there are more than {MOST} {query.resource.plural}: ask for smaller pages, for one "
                            "namespace or for part of a name"
                        )
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
        self, instance: str, objects: Sequence[Object], *, namespace: str | None, timeout: float
    ) -> Mapping[str, Binding]:
        client = self._reach.instance(instance)
        if len(objects) <= _ONE_BY_ONE:
            found = await asyncio.gather(*(_binding(client, obj, timeout) for obj in objects))
            bindings = [binding for binding in found if binding is not None]
        else:
            page = await client.list(kinds.RESOURCE_BINDINGS, namespace=namespace, as_type=Binding, timeout=timeout)
            bindings = page.items
        return {binding.spec.resource.uid: binding for binding in bindings}

    async def providers(self, instance: str, *, timeout: float) -> Mapping[str, str]:
        page = await self._reach.instance(instance).list(kinds.CLUSTERS, as_type=_Cluster, timeout=timeout)
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


def binding_name(name: str, kind: str) -> str:
    return f"{name}-{kind}".lower().replace(":", ".")


def _fits(obj: Object, query: Query) -> bool:
    # Items of a list come without the two.
    obj.setdefault("apiVersion", query.resource.api_version)
    obj.setdefault("kind", query.resource.kind)
    if query.resource.namespaced and not query.visible.includes(obj["metadata"]["namespace"]):
        return False
    return query.name_contains in obj["metadata"]["name"] and all(holds(obj) for holds in query.filters)
