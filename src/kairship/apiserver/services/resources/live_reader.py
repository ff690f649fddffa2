"""Reads objects from the instance itself, page by page, and keeps no more than the page of the request.

An API server neither sorts nor searches by part of a name, so every list reads everything. The index exists to avoid
that; this reader answers when the index cannot, and its memory is bounded all the same.

The instance is read with the plane's own credential, because the entrance has authorised the caller for exactly what is
read. A member is read as the caller, so that the member's own RBAC decides too.
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
from kairship.kube import Client, Forbidden, NotFound, Object, Resource, kinds
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
            async with aclosing(self._pages(query, call)) as pages:
                async for page in pages:
                    fitting = [obj for obj in page if fits(obj, query)]
                    total += len(fitting)
                    refuse_too_many(query, total)
                    kept = sorted([*kept, *fitting], key=query.key, reverse=query.descending)[:needed]
        return Found(query.window.cut(kept), total)

    async def _pages(self, query: Query, call: Call) -> AsyncGenerator[list[Object]]:
        """The pages of the namespaces that the caller may see, and of no others."""
        namespaces = query.visible.namespaces_to_list(query.namespace) if query.resource.namespaced else [None]
        for namespace in namespaces:
            continue_token: str | None = None
            while continue_token != "":
                items, continue_token = await self._page(query, namespace, continue_token, call)
                yield items

    async def _page(
        self, query: Query, namespace: str | None, continue_token: str | None, call: Call
    ) -> tuple[list[Object], str]:
        """One page, and the token to continue with: empty on the last page."""
        resource = MemberResource.at(query.cluster, query.resource) if query.cluster else query.resource

        async def read(client: Client) -> tuple[list[Object], str]:
            page = await client.list(
                resource,
                namespace=namespace,
                label_selector=query.label_selector,
                field_selector=query.field_selector,
                limit=_PAGE,
                continue_token=continue_token,
            )
            return page.items, page.continue_token

        async def read_in_member(client: Client) -> tuple[list[Object], str]:
            try:
                return await read(client)
            except Forbidden:
                if not await self._is_in_member(query, namespace):
                    return [], ""
                raise

        if not query.cluster:
            return await read(self._clients.instance(query.instance))
        return await self._clients.as_caller(query.instance, call, read_in_member)

    async def _is_in_member(self, query: Query, namespace: str | None) -> bool:
        """Whether the member has the namespace. Rights on a namespace are in it, so nobody has them where it is not.

        Raises `NotFound` if there is no such member: nobody has rights there either.
        """
        client = self._clients.instance(query.instance)
        await client.get(kinds.CLUSTERS, query.cluster)
        if namespace is None:
            return True
        try:
            await client.get(MemberResource.at(query.cluster, kinds.NAMESPACES), namespace)
        except NotFound:
            return False
        return True

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
