"""The watch on the objects of a kind in an instance, and on their target clusters.

Two streams are merged: that of the objects and, for kinds whose views show target clusters, that of their bindings. A
watch remembers no more than a resourceVersion and the target clusters of each object. A slow client slows both streams
down instead of filling memory.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Any, NamedTuple

import msgspec
from protobuf import Message

from kairship.apiserver.services.instance_watch import Delta, KnownObjects, object_key, watch_instance
from kairship.apiserver.services.resources.kind import NO_TARGET_CLUSTERS, Kind, TargetClusters
from kairship.apiserver.services.resources.object_access import ObjectAccess
from kairship.apiserver.services.resources.operations import KindOperation, reply_with_view, view_field
from kairship.apiserver.services.resources.reader import Binding
from kairship.apiserver.services.resources.target_clusters import target_clusters
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.kube import NotFound, Object, Resource, kinds
from kairship.reconcile import ObjectName, Selection
from kairship.rpc.calls import Call, patience
from kairship.rpc.pending import background_task

_BUFFERED = 32


class Watch(KindOperation):
    """Replies with every object as ADDED, then SYNCED, then the changes, without end."""

    request_fields = frozenset({"instance", "namespace"})

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> AsyncGenerator[Message[Any], None]:
        async with aclosing(_ObjectWatch(access, self.kind, request, call).events()) as events:
            async for event in events:
                yield event

    def _fits_reply(self, reply: type[Message[Any]]) -> bool:
        return view_field(reply, self.kind.message) is not None


class _Received(NamedTuple):
    stream: Resource
    """The kind of the stream that the delta came from."""
    delta: Delta


class _ObjectWatch:
    def __init__(self, access: ObjectAccess, kind: Kind, request: Any, call: Call) -> None:
        self._access = access
        self._kind = kind
        self._instance: str = request.instance
        self._visible = call.sight.within(request.instance)
        self._namespaces = self._visible.namespaces_to_list(getattr(request, "namespace", "") or None)
        self._call = call
        self._received: asyncio.Queue[_Received] = asyncio.Queue(_BUFFERED)
        self._targets: dict[ObjectName, TargetClusters] = {}
        self._sent: set[ObjectName] = set()
        """The objects that the client knows of."""

    async def events(self) -> AsyncGenerator[Message[Any]]:
        async with AsyncExitStack() as stack:
            streams = []
            if self._kind.shows_target_clusters:
                # The bindings come first, so that the first event of an object has its target clusters.
                streams.append(await stack.enter_async_context(background_task(self._receive(kinds.RESOURCE_BINDINGS))))
                synced = False
                while not synced:
                    _, delta = await self._next(streams)
                    await self._update_targets(delta.upserted)
                    synced = delta.synced
            streams.append(await stack.enter_async_context(background_task(self._receive(self._kind.resource))))
            synced = False
            while True:
                stream, delta = await self._next(streams)
                if stream == self._kind.resource:
                    for obj in delta.upserted:
                        yield self._upserted(obj)
                    for name in delta.deleted:
                        if name in self._sent:
                            yield self._deleted(name)
                else:
                    for name in await self._update_targets(delta.upserted):
                        if (event := await self._retargeted(name)) is not None:
                            yield event
                if delta.synced and not synced and stream == self._kind.resource:
                    synced = True
                    yield self._call.method.reply(type=WatchEventType.SYNCED)

    async def _receive(self, resource: Resource) -> None:
        known = KnownObjects()
        # Several namespaces are picked out of all: one stream for each would be one connection for each.
        namespace = self._namespaces[0] if len(self._namespaces) == 1 else None
        selection = Selection(resource, dict[str, Any], namespace=namespace)
        steps = watch_instance(self._access.clients, self._instance, selection, self._access.clock)
        async with aclosing(steps):
            async for step in steps:
                delta = known.apply(step)
                visible = [obj for obj in delta.upserted if self._visible.includes(object_key(obj).namespace)]
                if visible or delta.deleted or delta.synced:
                    await self._received.put(_Received(resource, delta._replace(upserted=visible)))

    async def _next(self, streams: list[asyncio.Task[None]]) -> _Received:
        getting = asyncio.create_task(self._received.get())
        try:
            await asyncio.wait({getting, *streams}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done():
                for stream in streams:
                    if stream.done():
                        stream.result()  # raises the error that ended the stream
            return await getting
        finally:
            getting.cancel()

    async def _update_targets(self, bindings: list[Object]) -> list[ObjectName]:
        """Returns the objects whose target clusters have changed."""
        changed: list[ObjectName] = []
        found = [msgspec.convert(each, Binding) for each in bindings]
        found = [each for each in found if each.spec.resource.kind == self._kind.resource.kind]
        if not found:
            return changed
        providers = await self._access.reader.providers(self._instance, self._call)
        for binding in found:
            name = ObjectName(binding.spec.resource.namespace, binding.spec.resource.name)
            targets = target_clusters(binding, providers)
            if self._targets.get(name) != targets:
                self._targets[name] = targets
                changed.append(name)
        return changed

    async def _retargeted(self, name: ObjectName) -> Message[Any] | None:
        if name not in self._sent:
            return None
        try:
            # Not from the reader: the index may be older than what this watch has sent already.
            obj = await self._access.clients.instance(self._instance).get(
                self._kind.resource, name.name, namespace=name.namespace, timeout=patience(self._call)
            )
        except NotFound:
            return None
        return self._upserted(obj)

    def _upserted(self, obj: Object) -> Message[Any]:
        obj = {"apiVersion": self._kind.resource.api_version, "kind": self._kind.resource.kind, **obj}
        name = object_key(obj)
        event = WatchEventType.MODIFIED if name in self._sent else WatchEventType.ADDED
        self._sent.add(name)
        view = self._kind.view(obj, self._targets.get(name, NO_TARGET_CLUSTERS))
        return reply_with_view(self._call.method, view, type=event)

    def _deleted(self, name: ObjectName) -> Message[Any]:
        self._sent.discard(name)
        self._targets.pop(name, None)
        view = self._kind.view({"metadata": {"namespace": name.namespace, "name": name.name}}, NO_TARGET_CLUSTERS)
        return reply_with_view(self._call.method, view, type=WatchEventType.DELETED)
