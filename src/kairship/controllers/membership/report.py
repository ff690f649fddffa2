"""The status of one membership, as it is written and as it becomes. Nothing is written that is written already."""

import datetime as dt
from typing import Any

import msgspec

from kairship.controllers.global_cluster import MEMBERSHIP
from kairship.reconcile import Context, Metadata
from kairship.resources import (
    ConditionStatus,
    MembershipCondition,
    MembershipPhase,
    MembershipReason,
    MembershipSpec,
    MembershipStatus,
    find_condition,
    is_true,
    set_condition,
)

_LONGEST = 1000
_BEGUN = frozenset({MembershipReason.JOINING, MembershipReason.JOIN_FAILED, MembershipReason.JOINED})


class KnownMembership(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: MembershipSpec
    status: MembershipStatus = MembershipStatus()


class Report:
    def __init__(self, context: Context, membership: KnownMembership) -> None:
        self.membership = membership
        self.status = membership.status
        self._context = context

    @property
    def joined(self) -> bool:
        return is_true(self.status.conditions, MembershipCondition.JOINED)

    @property
    def begun(self) -> bool:
        """Whether a join was begun, so that there may be something to undo."""
        found = find_condition(self.status.conditions, MembershipCondition.JOINED)
        return self.status.karmada_cluster_uid is not None or (found is not None and found.reason in _BEGUN)

    def since(self, kind: MembershipCondition, status: ConditionStatus) -> float:
        """Seconds for which a condition has had this status; 0 if it has not."""
        found = find_condition(self.status.conditions, kind)
        if found is None or found.status != status:
            return 0.0
        return (self._context.clock.wall() - found.last_transition_time).total_seconds()

    def set(self, **fields: Any) -> None:
        self.status = msgspec.structs.replace(self.status, **fields)

    def state(
        self, kind: MembershipCondition, status: ConditionStatus, reason: MembershipReason, message: str = ""
    ) -> None:
        conditions = set_condition(
            self.status.conditions,
            kind,
            status,
            reason,
            message=message[:_LONGEST],
            generation=self.membership.metadata.generation,
            now=self._context.clock.wall(),
        )
        self.set(conditions=tuple(sorted(conditions, key=lambda condition: condition.type)))

    def drop(self, kind: MembershipCondition) -> None:
        """Say nothing about this aspect any more."""
        self.set(conditions=tuple(each for each in self.status.conditions if each.type != kind))

    def not_joined(self, phase: MembershipPhase, reason: MembershipReason, message: str) -> None:
        """What keeps the cluster from joining. One that has joined stays so: the trouble is told elsewhere."""
        if self.joined:
            return
        if self.begun and phase is MembershipPhase.PENDING:
            # That it was begun must not be forgotten: there may be something to undo.
            phase, reason = MembershipPhase.JOINING, MembershipReason.JOIN_FAILED
        self.state(MembershipCondition.JOINED, "False", reason, message)
        self.set(phase=phase)

    def has_joined(self, uid: str, *, credentials_version: str, credentials_end: dt.datetime | None) -> None:
        if not self.joined or self.status.karmada_cluster_uid != uid:
            self.set(joined_at=self._now())
        self.state(MembershipCondition.JOINED, "True", MembershipReason.JOINED)
        ending = ""
        if credentials_end is not None:
            ending = f"the registered credential ends at {credentials_end:%Y-%m-%d %H:%M} UTC, Karmada's own has no end"
        self.state(MembershipCondition.CREDENTIALS_CURRENT, "True", MembershipReason.CURRENT, ending)
        self.set(phase=MembershipPhase.JOINED, karmada_cluster_uid=uid, credentials_version=credentials_version)

    async def write(self) -> bool:
        """Whether the status is what it should be; not if the membership has changed since it was read."""
        self.set(observed_generation=self.membership.metadata.generation)
        if self.status == self.membership.status:
            return True
        return await self._context.owner.apply_status(MEMBERSHIP, self.membership.metadata, self.status)

    def _now(self) -> dt.datetime:
        return self._context.clock.wall().replace(microsecond=0)
