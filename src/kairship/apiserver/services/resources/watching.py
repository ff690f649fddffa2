"""Following the objects of a kind in an instance, and where they were placed.

Two streams come together: the objects, and for kinds that tell where they were placed their bindings. What is kept is
for each object a version and the clusters it is in. A slow follower slows both streams down instead of filling memory.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec
from protobuf import Message

from kairship.apiserver.services.resources.kind import NOWHERE, Kind, Placed
from kairship.apiserver.services.resources.operations import Operations, enclosed
from kairship.apiserver.services.resources.placing import placed
from kairship.apiserver.services.resources.reader import Binding
from kairship.apiserver.services.watching import Picture, Place, follow_in_instance
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.kube import NotFound, Object, Resource, kinds
from kairship.reconcile import Selection
from kairship.rpc.calls import Call, patience
from kairship.rpc.waiting import running
from kairship.wire import Method

_AHEAD = 32

Taken = tuple[Resource, list[Object], list[Place], bool]
"""Of which stream, what is there or has changed, what is gone, whether its list is complete."""


class Following:
    """One watch."""

    def __init__(self, operations: Operations, kind: Kind, method: Method, request: Any, call: Call) -> None:
        self._operations = operations
        self._kind = kind
        self._method = method
        self._instance: str = request.instance
        self._visible = call.sight.within(request.instance)
        self._namespaces = self._visible.to_list(request.namespace or None)
        self._call = call
        self._taken: asyncio.Queue[Taken] = asyncio.Queue(_AHEAD)
        self._placed: dict[Place, Placed] = {}
        self._told: set[Place] = set()

    async def events(self) -> AsyncGenerator[Message[Any]]:
        """Without end."""
        async with AsyncExitStack() as stack:
            runners = []
            if self._kind.is_placed:
                # First, so that the objects come with their places.
                runners.append(await stack.enter_async_context(running(self._take(kinds.RESOURCE_BINDINGS))))
                complete = False
                while not complete:
                    _, there, _, complete = await self._next(runners)
                    await self._place(there)
            runners.append(await stack.enter_async_context(running(self._take(self._kind.resource))))
            synced = False
            while True:
                resource, there, gone, complete = await self._next(runners)
                if resource == self._kind.resource:
                    for obj in there:
                        yield self._there(obj)
                    for place in gone:
                        if place in self._told:
                            yield self._gone(place)
                else:
                    for place in await self._place(there):
                        if (event := await self._moved(place)) is not None:
                            yield event
                if complete and not synced and resource == self._kind.resource:
                    synced = True
                    yield self._method.reply(type=WatchEventType.SYNCED)

    async def _take(self, resource: Resource) -> None:
        picture = Picture()
        # Several namespaces are picked out of all: a stream of each would be one connection for each.
        namespace = self._namespaces[0] if len(self._namespaces) == 1 else None
        selection = Selection(resource, dict[str, Any], namespace=namespace)
        steps = follow_in_instance(self._operations.reach, self._instance, selection, self._operations.clock)
        async with aclosing(steps):
            async for step in steps:
                there, gone, complete = picture.take(step)
                there = [obj for obj in there if self._visible.includes(obj["metadata"].get("namespace", ""))]
                if there or gone or complete:
                    await self._taken.put((resource, there, gone, complete))

    async def _next(self, runners: list[asyncio.Task[None]]) -> Taken:
        getting = asyncio.create_task(self._taken.get())
        try:
            await asyncio.wait({getting, *runners}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done():
                for runner in runners:
                    if runner.done():
                        runner.result()  # raises why the stream has ended
            return await getting
        finally:
            getting.cancel()

    async def _place(self, bindings: list[Object]) -> list[Place]:
        """The objects that are in other clusters than before, or otherwise there."""
        moved: list[Place] = []
        found = [msgspec.convert(each, Binding) for each in bindings]
        found = [each for each in found if each.spec.resource.kind == self._kind.resource.kind]
        if not found:
            return moved
        providers = await self._operations.reader.providers(self._instance, self._call)
        for binding in found:
            place = (binding.spec.resource.namespace, binding.spec.resource.name)
            shown = placed(binding, providers)
            if self._placed.get(place) != shown:
                self._placed[place] = shown
                moved.append(place)
        return moved

    async def _moved(self, place: Place) -> Message[Any] | None:
        if place not in self._told:
            return None
        namespace, name = place
        try:
            # Not from the reader: the index may be older than what this watch has told already.
            obj = await self._operations.reach.instance(self._instance).get(
                self._kind.resource, name, namespace=namespace, timeout=patience(self._call)
            )
        except NotFound:
            return None
        return self._there(obj)

    def _there(self, obj: Object) -> Message[Any]:
        obj = {"apiVersion": self._kind.resource.api_version, "kind": self._kind.resource.kind, **obj}
        place = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        kind = WatchEventType.MODIFIED if place in self._told else WatchEventType.ADDED
        self._told.add(place)
        return enclosed(self._method, self._kind.view(obj, self._placed.get(place, NOWHERE)), type=kind)

    def _gone(self, place: Place) -> Message[Any]:
        self._told.discard(place)
        self._placed.pop(place, None)
        namespace, name = place
        last = self._kind.view({"metadata": {"namespace": namespace, "name": name}}, NOWHERE)
        return enclosed(self._method, last, type=WatchEventType.DELETED)
