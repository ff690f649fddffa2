"""Keeps the authoriser up to date with the bindings and instances of the global cluster.

The reflectors report changes as they happen, and connections that break. They notice a connection that goes silent
only after minutes, so a probe makes a small request every few seconds, and the authoriser fails closed when it is not
answered. That bindings reach the global cluster at all is checked against the directory of global management
(`outdated_bindings`).
"""

import asyncio
from collections.abc import Callable, Iterator

from kairship.access.authoriser import Authoriser, KnownInstances
from kairship.access.bindings import Binding
from kairship.access.delivery.binding_store import BINDING
from kairship.access.freshness import Freshness
from kairship.access.grant_index import GrantIndex
from kairship.access.outdated_bindings import OutdatedBindings
from kairship.kube import Client, KubeError
from kairship.reconcile import Change, Clock, ListWatchOptions, MetadataOnly, Metrics, Reflector, Selection, resource_of
from kairship.resources import INSTANCES

PROBE_EVERY = 2.0
PROBE_TIMEOUT = 3.0
# A watch that is renewed often cannot be silent for long either.
_LIST_WATCH = ListWatchOptions(watch_timeout=60.0, inactivity_timeout=90.0)


INSTANCE = resource_of(INSTANCES)


class AccessInformer:
    """Owns the `authoriser`, which answers UNCERTAIN until `run` has read the first lists."""

    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self._client = client
        self._clock = clock
        self._grants = GrantIndex()
        self._known_instances = KnownInstances()
        self._freshness = Freshness(clock)
        self._ready = asyncio.Event()
        self._listeners: list[Callable[[Binding], None]] = []
        self.authoriser = Authoriser(self._grants, self._known_instances, self._freshness)
        self._bindings = Reflector(
            client, Selection(BINDING, Binding), clock=clock, metrics=metrics, options=_LIST_WATCH
        )
        self._instances = Reflector(
            client, Selection(INSTANCE, MetadataOnly), clock=clock, metrics=metrics, options=_LIST_WATCH
        )
        self.outdated = OutdatedBindings(self.stored, self._freshness, clock)
        self._bindings.subscribe(self._handle_binding)
        self._instances.subscribe(self._handle_instance)

    def on_binding_changed(self, listener: Callable[[Binding], None]) -> None:
        """Calls the listener with the former state of every binding that was changed or deleted, in this event loop.

        Streams that were opened by that binding's rights are closed by it.
        """
        self._listeners.append(listener)

    def stored(self, name: str) -> Binding | None:
        return self._bindings.store.get(name)

    def all_stored(self) -> Iterator[Binding]:
        return iter(self._bindings.store)

    async def wait_ready(self) -> None:
        """Returns when the authoriser has become able to decide for the first time."""
        await self._ready.wait()

    async def wait_synced(self) -> None:
        await self._bindings.wait_synced()
        await self._instances.wait_synced()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._bindings.run())
            tasks.create_task(self._instances.run())
            tasks.create_task(self._probe())

    async def _probe(self) -> None:
        await self.wait_synced()
        while True:
            try:
                await self._client.list(BINDING, limit=1, timeout=PROBE_TIMEOUT)
                answered = True
            except KubeError:
                answered = False
            # Both count: an answer on one connection says nothing of the watch on another.
            if answered and self._bindings.problem is None and self._instances.problem is None:
                self._freshness.mark_connected()
                self._ready.set()
            else:
                self._freshness.mark_disconnected()
            await self._clock.sleep(PROBE_EVERY)

    def _handle_binding(self, change: Change[Binding]) -> None:
        if change.old is not None:
            self._grants.remove(change.old.name)
        if change.new is not None:
            self._grants.put(change.new)
        if (changed := change.new or change.old) is not None:
            self.outdated.handle_change(changed.name)
        if change.old is not None:
            for listener in self._listeners:
                listener(change.old)

    def _handle_instance(self, change: Change[MetadataOnly]) -> None:
        if change.old is not None:
            self._known_instances.remove(change.old.metadata.name)
        if change.new is not None:
            self._known_instances.put(change.new.metadata.name, change.new.metadata.uid)
