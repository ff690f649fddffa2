"""The rules of leader election by a Lease, without any I/O: when a candidate may claim it, and what it writes.

The record is client-go's, so that its tools can read it and its candidates could compete with ours. The times in it are
for people. A candidate counts from the moment at which it *saw* the record change, on its own clock: clocks of
different machines need not agree, they need only run at the same speed.

Two processes never lead at once, because a holder counts its term from before it sent the renewal, and the others count
from after they saw it. The holder gives up after `renew_deadline`; the others claim after `duration`, which is longer.
"""

from datetime import datetime
from typing import Any

import msgspec

from kairship.reconcile.clock import Clock


class LeaseTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The times of leader election, in seconds."""

    duration: int = 8
    """Without a renewal for this long, other candidates may take the lease."""
    renew_deadline: float = 5.0
    """Without a renewal for this long, the holder stops by itself."""
    renew_every: float = 2.0
    attempt: float = 1.5
    """The timeout of each call to the server, so that several attempts fit before the deadline."""
    retry_every: float = 0.25
    """The pause after a renewal that failed."""
    poll_every: float = 0.4
    """How often a candidate reads the lease. A clean hand-over takes no longer than this."""

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
            # The first holder of a lease is no transition.
            lease_transitions=(self.lease_transitions or 0) + (1 if self.acquire_time else 0),
        )

    def renewed(self, *, at: datetime) -> "LeaseRecord":
        return msgspec.structs.replace(self, renew_time=micro_time(at))

    def released(self, *, at: datetime) -> "LeaseRecord":
        now = micro_time(at)
        # client-go writes one second too: its candidates require a positive number.
        return msgspec.structs.replace(
            self, holder_identity="", lease_duration_seconds=1, acquire_time=now, renew_time=now
        )

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class Candidacy:
    """What one candidate has seen of the lease, and whether it may claim it."""

    def __init__(self, identity: str, timing: LeaseTiming, clock: Clock) -> None:
        self.identity = identity
        self._timing = timing
        self._clock = clock
        self._seen: LeaseRecord | None = None
        self._seen_at = 0.0

    def consider(self, record: LeaseRecord | None) -> LeaseRecord | None:
        """Returns the record to claim the lease with, if that is allowed. `record` is the stored one.

        A lease that no longer exists counts as it was last seen: it was deleted, perhaps unnoticed by its holder.
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
    """Formats a moment as a Kubernetes MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
