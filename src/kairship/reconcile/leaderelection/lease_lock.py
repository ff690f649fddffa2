"""Acquires, renews and releases a Lease at an API server.

Plain coroutines for one task at a time. Each call has its own short timeout, and each write names the revision that it
replaces, so that of two concurrent writes the server accepts one. The next read shows what became of a write whose
reply was lost.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from kairship.kube import AlreadyExists, Client, Conflict, KubeError, NotFound, Object, kinds
from kairship.reconcile.clock import Clock
from kairship.reconcile.leaderelection.leader_term import LeaderTerm
from kairship.reconcile.leaderelection.lease import Candidacy, LeaseRecord, LeaseTiming
from kairship.reconcile.workqueue.backoff import jittered

log = structlog.get_logger(__name__)


class LeaseName(msgspec.Struct, frozen=True):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class LeaseLock:
    """One candidate's access to the Lease."""

    def __init__(self, client: Client, lease: LeaseName, *, identity: str, timing: LeaseTiming, clock: Clock) -> None:
        self._client = client
        self._lease = lease
        self._identity = identity
        self._timing = timing
        self._clock = clock
        self._candidacy = Candidacy(identity, timing, clock)
        self._held: Object = {}

    async def acquire(self) -> LeaderTerm:
        """Waits until this candidate holds the lease."""
        while True:
            try:
                if (term := await self._claim()) is not None:
                    return term
            except (Conflict, AlreadyExists):
                pass  # another candidate was faster
            except KubeError as error:
                log.warning("the lease cannot be claimed", lease=str(self._lease), error=str(error))
            await self._clock.sleep(jittered(self._timing.poll_every))

    async def renew_until_lost(self, term: LeaderTerm, *, responsive: Callable[[], bool]) -> str:
        """Renews the lease until the term is over, and returns the reason for its end.

        The lease is not renewed any more when `responsive` returns False.
        """
        pause = self._timing.renew_every
        while True:
            await self._clock.sleep(min(pause, term.remaining()))
            if not term.valid:
                return "the lease could not be renewed in time"
            if not responsive():
                return "this process was too busy to lead"
            asked_at = self._clock.now()
            try:
                await self._renew(timeout=min(self._timing.attempt, term.remaining()))
            except (Conflict, NotFound):
                if not await self._still_held(term):
                    return "another process holds the lease"
                pause = self._timing.retry_every
                continue
            except KubeError as error:
                log.warning("lease not renewed", lease=str(self._lease), error=str(error))
                pause = self._timing.retry_every
                continue
            if not term.extend(asked_at + self._timing.renew_deadline):
                return "the lease was renewed too late"
            pause = self._timing.renew_every

    async def release(self) -> None:
        """Releases the lease if this candidate holds it, so that the next one need not wait until it expires."""
        for _ in range(3):
            try:
                found = await self._read()
                if found is None or _record(found).holder_identity != self._identity:
                    return
                await self._write(found, _record(found).released(at=self._clock.wall()))
            except Conflict:
                continue  # a renewal that was in flight has arrived in between
            except KubeError as error:
                log.warning("lease not released", lease=str(self._lease), error=str(error))
            return

    async def _claim(self) -> LeaderTerm | None:
        found = await self._read()
        claim = self._candidacy.consider(None if found is None else _record(found))
        if claim is None:
            return None
        asked_at = self._clock.now()
        if found is None:
            self._held = await self._create(claim)
        else:
            self._held = await self._write(found, claim)
        return LeaderTerm(
            scope=str(self._lease),
            number=int(self._held["metadata"]["resourceVersion"]),
            until=asked_at + self._timing.renew_deadline,
            clock=self._clock,
        )

    async def _renew(self, *, timeout: float) -> None:
        record = _record(self._held).renewed(at=self._clock.wall())
        self._held = await self._write(self._held, record, timeout=timeout)

    async def _still_held(self, term: LeaderTerm) -> bool:
        """Reads the lease after a conflict: someone may have labelled it, or a write of our own arrived late."""
        try:
            found = await self._read()
        except KubeError:
            return term.valid  # the next renewal will show
        if found is None or _record(found).holder_identity != self._identity:
            return False
        self._held = found
        return True

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(
                kinds.LEASES, self._lease.name, namespace=self._lease.namespace, timeout=self._timing.attempt
            )
        except NotFound:
            return None

    async def _create(self, record: LeaseRecord) -> Object:
        lease = {"metadata": {"name": self._lease.name}, "spec": record.fields()}
        return await self._client.create(
            kinds.LEASES, lease, namespace=self._lease.namespace, timeout=self._timing.attempt
        )

    async def _write(self, found: Object, record: LeaseRecord, *, timeout: float | None = None) -> Object:
        # Unknown fields stay as they are, also those of the spec.
        spec: dict[str, Any] = {**(found.get("spec") or {}), **record.fields()}
        return await self._client.replace(
            kinds.LEASES, {**found, "spec": spec}, timeout=timeout or self._timing.attempt
        )


def _record(lease: Object) -> LeaseRecord:
    return msgspec.convert(lease.get("spec") or {}, LeaseRecord)
