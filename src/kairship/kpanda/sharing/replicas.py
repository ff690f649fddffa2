"""Who is there: the Leases of all replicas, followed. One that is not renewed is taken for gone.

Times are counted from the moment at which a renewal was *seen*, on this machine's clock: clocks need not agree.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec
import structlog

from kairship.kpanda.sharing.share import holder_of
from kairship.kube import Client, KubeError, kinds
from kairship.reconcile import Change, Clock, LeaseName, Metadata, Metrics, Reflector, Selection, Timing
from kairship.resources import NAMESPACE

log = structlog.get_logger(__name__)

PREFIX = "kairship-kpanda-replica-"
_LOOK_EVERY = 0.5
_FORGOTTEN_AFTER = 3600.0


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _LeaseSpec = _LeaseSpec()


class Replicas:
    """A `Share`, while `run` runs."""

    def __init__(self, client: Client, own: LeaseName, *, timing: Timing, clock: Clock, metrics: Metrics) -> None:
        """`own` is the Lease that this process holds, called `PREFIX` and something that nobody else has."""
        self._client = client
        self._own = own.name
        self._timing = timing
        self._clock = clock
        self._leases = Reflector(
            client, Selection(kinds.LEASES, _Lease, namespace=NAMESPACE), clock=clock, metrics=metrics
        )
        self._seen: dict[str, tuple[_LeaseSpec, float]] = {}
        self._present: frozenset[str] = frozenset((self._own,))
        self._listeners: list[Callable[[], None]] = []

    @property
    def present(self) -> frozenset[str]:
        return self._present

    def has(self, uid: str) -> bool:
        return holder_of(uid, self._present) == self._own

    def subscribe(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    async def run(self) -> None:
        """Until cancelled."""
        self._leases.subscribe(self._hear)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._leases.run())
            while True:
                self._look()
                await self._remove_forgotten()
                await self._clock.sleep(_LOOK_EVERY)

    async def wait_synced(self) -> None:
        await self._leases.wait_synced()
        self._look()

    def _hear(self, change: Change[_Lease]) -> None:
        lease = change.new or change.old
        if lease is None or not lease.metadata.name.startswith(PREFIX):
            return
        if change.new is None:
            self._seen.pop(lease.metadata.name, None)
        else:
            self._seen[lease.metadata.name] = (change.new.spec, self._clock.now())
        self._look()

    def _look(self) -> None:
        if self._leases.problem is not None:
            return  # whoever cannot see the others cannot tell that they are gone
        now = self._clock.now()
        there = {
            name
            for name, (spec, seen_at) in self._seen.items()
            if spec.holder_identity and now - seen_at < self._timing.duration
        }
        present = frozenset(there | {self._own})
        if present != self._present:
            log.info("replicas came or went", replicas=len(present))
            self._present = present
            for listener in self._listeners:
                listener()

    async def _remove_forgotten(self) -> None:
        """Leases of replicas that were killed would stay for ever."""
        now = self._clock.now()
        for name, (_, seen_at) in tuple(self._seen.items()):
            if name != self._own and now - seen_at > _FORGOTTEN_AFTER:
                del self._seen[name]
                with suppress(KubeError):  # another replica, or this one after its next start, does it as well
                    await self._client.delete(kinds.LEASES, name, namespace=NAMESPACE, missing_ok=True)
