"""The rules of an election by lease, without any input or output: when a candidate may claim, and what it writes.

The record is client-go's, so that its tools read it and its candidates could stand beside ours. Times in it are for
people. A candidate counts from the moment at which it *saw* the record change, on its own clock: clocks of different
machines need not agree, they need only run at the same speed.

Why two never lead at once: a holder counts its term from before it sent the renewal; others count from after they saw
it. The holder gives up after `renew_deadline`, others claim after `duration`, which is longer.
"""

from datetime import datetime
from typing import Any

import msgspec

from kairship.reconcile.clock import Clock


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The times of an election, in seconds."""

    duration: int = 8
    """After this long without a renewal others may take the lease."""
    renew_deadline: float = 5.0
    """After this long without a renewal the holder stops by itself."""
    renew_every: float = 2.0
    attempt: float = 1.5
    """For each call to the server, so that several fit before the deadline."""
    retry_every: float = 0.25
    """After a renewal that failed."""
    look_every: float = 0.4
    """How often a candidate looks at the lease: what a clean hand-over takes at most."""

    def __post_init__(self) -> None:
        if not self.renew_every + self.attempt < self.renew_deadline < self.duration:
            raise ValueError("a renewal must fit before the deadline, and the deadline before the end of the lease")


class LeaseRecord(msgspec.Struct, frozen=True, rename="camel"):
    """The `spec` of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None

    def claimed(self, identity: str, *, duration: int, at: datetime) -> "LeaseRecord":
        """The record of a new term."""
        now = micro_time(at)
        return LeaseRecord(
            holder_identity=identity,
            lease_duration_seconds=duration,
            acquire_time=now,
            renew_time=now,
            # Of a lease that nobody ever held, the first holder is no transition.
            lease_transitions=(self.lease_transitions or 0) + (1 if self.acquire_time else 0),
        )

    def renewed(self, *, at: datetime) -> "LeaseRecord":
        return msgspec.structs.replace(self, renew_time=micro_time(at))

    def released(self, *, at: datetime) -> "LeaseRecord":
        now = micro_time(at)
        # One second is what client-go writes: its candidates insist on a positive number.
        return msgspec.structs.replace(
            self, holder_identity="", lease_duration_seconds=1, acquire_time=now, renew_time=now
        )

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class Candidacy:
    """What one candidate knows of the lease, and whether it may claim it."""

    def __init__(self, identity: str, timing: Timing, clock: Clock) -> None:
        self.identity = identity
        self._timing = timing
        self._clock = clock
        self._seen: LeaseRecord | None = None
        self._seen_at = 0.0

    def consider(self, record: LeaseRecord | None) -> LeaseRecord | None:
        """Given the record as it is stored now: the record to claim the lease with, if that is allowed.

        A lease that is gone was deleted by somebody, perhaps unnoticed by its holder: it counts as it was last seen.
        """
        now = self._clock.now()
        if record is not None and record != self._seen:
            self._seen, self._seen_at = record, now
        known = self._seen or LeaseRecord()
        if not self._free(known, now):
            return None
        return known.claimed(self.identity, duration=self._timing.duration, at=self._clock.wall())

    def _free(self, record: LeaseRecord, now: float) -> bool:
        if record.holder_identity in (None, "", self.identity):
            return True
        return now >= self._seen_at + (record.lease_duration_seconds or self._timing.duration)


def micro_time(moment: datetime) -> str:
    """As Kubernetes writes a MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
