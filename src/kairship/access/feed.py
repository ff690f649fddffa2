"""What keeps the authoriser up to date: the bindings and instances of the global cluster, and whether they can be seen.

A reflector tells of changes as they happen, and of a connection that breaks. A connection that goes silent without
breaking it notices only after minutes, so a probe asks for something small every few seconds, and the authoriser fails
closed when there is no answer.
"""

import asyncio
from collections.abc import Callable, Iterator

from kairship.access.authoriser import Authoriser, KnownInstances
from kairship.access.bindings import Binding
from kairship.access.freshness import Freshness
from kairship.access.holdings import Holdings
from kairship.access.storing import BINDING
from kairship.kube import Client, KubeError
from kairship.reconcile import Change, Clock, MetadataOnly, Metrics, Pace, Reflector, Selection, resource_of
from kairship.resources import INSTANCES

PROBE_EVERY = 2.0
PROBE_TIMEOUT = 3.0
# A watch that is renewed often cannot be silent for long either.
_PACE = Pace(watch_timeout=60.0, inactivity_timeout=90.0)


INSTANCE = resource_of(INSTANCES)


class Feed:
    """Run it; `authoriser` answers UNCERTAIN until the first lists have been seen."""

    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self._client = client
        self._clock = clock
        self._holdings = Holdings()
        self._instances = KnownInstances()
        self._freshness = Freshness(clock)
        self._trusted = asyncio.Event()
        self._listeners: list[Callable[[Binding], None]] = []
        self.authoriser = Authoriser(self._holdings, self._instances, self._freshness)
        self._bindings = Reflector(client, Selection(BINDING, Binding), clock=clock, metrics=metrics, pace=_PACE)
        self._known = Reflector(client, Selection(INSTANCE, MetadataOnly), clock=clock, metrics=metrics, pace=_PACE)
        self._bindings.subscribe(self._binding_changed)
        self._known.subscribe(self._instance_changed)

    def on_loss(self, listener: Callable[[Binding], None]) -> None:
        """Hears of every binding that ended or changed, in this event loop: whoever holds streams open closes them."""
        self._listeners.append(listener)

    def stored(self, name: str) -> Binding | None:
        return self._bindings.store.get(name)

    def all_stored(self) -> Iterator[Binding]:
        return iter(self._bindings.store)

    async def wait_trusted(self) -> None:
        """Returns when the authoriser has answers for the first time."""
        await self._trusted.wait()

    async def wait_synced(self) -> None:
        await self._bindings.wait_synced()
        await self._known.wait_synced()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._bindings.run())
            tasks.create_task(self._known.run())
            tasks.create_task(self._probe())

    async def _probe(self) -> None:
        await self.wait_synced()
        while True:
            try:
                await self._client.list(BINDING, limit=1, timeout=PROBE_TIMEOUT)
                answered = True
            except KubeError:
                answered = False
            # Both count: an answer on one connection says nothing of the stream on another.
            if answered and self._bindings.problem is None and self._known.problem is None:
                self._freshness.in_contact()
                self._trusted.set()
            else:
                self._freshness.lost()
            await self._clock.sleep(PROBE_EVERY)

    def _binding_changed(self, change: Change[Binding]) -> None:
        if change.old is not None:
            self._holdings.remove(change.old.name)
        if change.new is not None:
            self._holdings.put(change.new)
        if change.old is not None:
            for listener in self._listeners:
                listener(change.old)

    def _instance_changed(self, change: Change[MetadataOnly]) -> None:
        if change.old is not None:
            self._instances.remove(change.old.metadata.name)
        if change.new is not None:
            self._instances.put(change.new.metadata.name, change.new.metadata.uid)
