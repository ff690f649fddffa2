"""Reading and watching instances, and the drivers and versions that new ones can be made with."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from kairship.apiserver.services.cache_watch import watch_cache
from kairship.apiserver.services.instance.base import InstanceServiceBase
from kairship.apiserver.services.instance.view import instance_view, state_of, view_for
from kairship.apiserver.services.object_views import as_json
from kairship.gen.kairship.instance.v1alpha1.instance_pb import (
    GetInstanceJSONRequest,
    GetInstanceJSONResponse,
    GetInstanceRequest,
    Instance,
    ListInstancesRequest,
    ListInstancesResponse,
    WatchInstancesRequest,
    WatchInstancesResponse,
)
from kairship.gen.kairship.instance.v1alpha1.settings_pb import (
    DriverOffer,
    GetInstanceKarmadaConfigRequest,
    GetInstanceKarmadaConfigResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.rpc.calls import Call, patience
from kairship.rpc.listing import Order, page_of
from kairship.rpc.resource_cache import SeenInstance
from kairship.rpc.views import unix_seconds

ORDER: Order[SeenInstance] = Order(
    name=lambda seen: seen.metadata.name,
    created=lambda seen: unix_seconds(seen.metadata.creation_timestamp),
    keys={SortBy.state: lambda seen: state_of(seen).name},
)


class InstanceReads(InstanceServiceBase):
    async def list_instances(self, request: ListInstancesRequest, call: Call) -> ListInstancesResponse:
        wanted, reach = request.name.casefold(), call.sight.coverage
        found = [
            seen
            for seen in await self._caches.instances.all(call)
            if reach.includes(seen.metadata.name)
            and (wanted in seen.metadata.name or wanted in seen.spec.alias.casefold())
        ]
        items, pagination = page_of(found, ORDER, request)
        return ListInstancesResponse(items=[view_for(reach, seen) for seen in items], pagination=pagination)

    async def get_instance(self, request: GetInstanceRequest, call: Call) -> Instance:
        return instance_view(await self._caches.instances.require(request.name, call))

    async def get_instance_json(self, request: GetInstanceJSONRequest, call: Call) -> GetInstanceJSONResponse:
        found = await self._caches.client.get(self._caches.instances.resource, request.name, timeout=patience(call))
        return GetInstanceJSONResponse(data=as_json(found))

    async def watch_instances(
        self, request: WatchInstancesRequest, call: Call
    ) -> AsyncIterator[WatchInstancesResponse]:
        def wanted(seen: SeenInstance) -> bool:
            name = seen.metadata.name
            return request.name in ("", name) and call.sight.coverage.includes(name)

        updates = watch_cache(self._caches.instances.reflector, wanted=wanted)
        async with aclosing(updates):
            async for update in updates:
                shown = view_for(call.sight.coverage, update.object) if update.object is not None else None
                yield WatchInstancesResponse(type=update.type, instance=shown)

    async def get_instance_karmada_config(
        self, request: GetInstanceKarmadaConfigRequest, call: Call
    ) -> GetInstanceKarmadaConfigResponse:
        return GetInstanceKarmadaConfigResponse(
            version=self._drivers.default_version,
            drivers=[DriverOffer(driver=str(each.driver), versions=list(each.versions)) for each in self._drivers.all],
        )
