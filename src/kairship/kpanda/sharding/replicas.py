"""Knows which replicas are present, by following their Leases. A replica that does not renew its Lease is gone.

Times are counted from the moment at which a renewal was *seen*, on this machine's clock, so clocks need not agree.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec
import structlog

from kairship.kpanda.sharding.shard import holder_of
from kairship.kube import Client, KubeError, kinds
from kairship.reconcile import Change, Clock, LeaseName, LeaseTiming, Metadata, Metrics, Reflector, Selection
from kairship.resources import NAMESPACE

log = structlog.get_logger(__name__)

LEASE_PREFIX = "kairship-kpanda-replica-"
_INTERVAL = 0.5
_ABANDONED_AFTER = 3600.0


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _LeaseSpec = _LeaseSpec()


class Replicas:
    """The shard of this replica, a `Shard`, while `run` runs."""

    def __init__(self, client: Client, own: LeaseName, *, timing: LeaseTiming, clock: Clock, metrics: Metrics) -> None:
        """`own` is the Lease that this process holds. Its name is `LEASE_PREFIX` and a unique suffix."""
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

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        self._leases.subscribe(self._on_change)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._leases.run())
            while True:
                self._refresh()
                await self._remove_abandoned()
                await self._clock.sleep(_INTERVAL)

    async def wait_synced(self) -> None:
        await self._leases.wait_synced()
        self._refresh()

    def _on_change(self, change: Change[_Lease]) -> None:
        lease = change.new or change.old
        if lease is None or not lease.metadata.name.startswith(LEASE_PREFIX):
            return
        if change.new is None:
            self._seen.pop(lease.metadata.name, None)
        else:
            self._seen[lease.metadata.name] = (change.new.spec, self._clock.now())
        self._refresh()

    def _refresh(self) -> None:
        if self._leases.problem is not None:
            return  # a replica that cannot see the others' Leases cannot tell that they are gone
        now = self._clock.now()
        renewed = {
            name
            for name, (spec, seen_at) in self._seen.items()
            if spec.holder_identity and now - seen_at < self._timing.duration
        }
        present = frozenset(renewed | {self._own})
        if present != self._present:
            log.info("replicas came or went", replicas=len(present))
            self._present = present
            for listener in tuple(self._listeners):
                listener()

    async def _remove_abandoned(self) -> None:
        """Removes the Leases of replicas that were killed, which would stay for ever."""
        now = self._clock.now()
        for name, (_, seen_at) in tuple(self._seen.items()):
            if name != self._own and now - seen_at > _ABANDONED_AFTER:
                del self._seen[name]
                with suppress(KubeError):  # another replica removes it, or this one after its next start
                    await self._client.delete(kinds.LEASES, name, namespace=NAMESPACE, missing_ok=True)
