"""The status of one membership, as this reconcile found it and as it changes it."""

import datetime as dt
from typing import ClassVar

import msgspec

from kairship.controllers.global_cluster import MEMBERSHIP
from kairship.reconcile import Context, Metadata, StatusWriter
from kairship.resources import (
    ConditionStatus,
    MembershipCondition,
    MembershipPhase,
    MembershipReason,
    MembershipSpec,
    MembershipStatus,
    is_true,
)

_BEGUN = frozenset({MembershipReason.JOINING, MembershipReason.JOIN_FAILED, MembershipReason.JOINED})


class KnownMembership(msgspec.Struct, frozen=True):
    """A Membership with its whole spec and status."""

    metadata: Metadata
    spec: MembershipSpec
    status: MembershipStatus = MembershipStatus()


class MembershipStatusWriter(StatusWriter[MembershipStatus]):
    longest_message: ClassVar[int] = 1000

    def __init__(self, context: Context, membership: KnownMembership) -> None:
        super().__init__(context, MEMBERSHIP, membership.metadata, membership.status)
        self.membership = membership

    @property
    def joined(self) -> bool:
        return is_true(self.status.conditions, MembershipCondition.JOINED)

    @property
    def begun(self) -> bool:
        """Whether a join has begun, so that there may be something to undo."""
        found = self.find_condition(MembershipCondition.JOINED)
        return self.status.karmada_cluster_uid is not None or (found is not None and found.reason in _BEGUN)

    def seconds_in(self, kind: MembershipCondition, status: ConditionStatus) -> float:
        """For how many seconds a condition has had this status; 0 if it has another one."""
        found = self.find_condition(kind)
        if found is None or found.status != status:
            return 0.0
        return (self._context.clock.wall() - found.last_transition_time).total_seconds()

    def set_not_joined(self, phase: MembershipPhase, reason: MembershipReason, message: str) -> None:
        """Says what keeps the cluster from joining. A cluster that has joined stays joined; other conditions say what
        is wrong with it."""
        if self.joined:
            return
        if self.begun and phase is MembershipPhase.PENDING:
            # The status must go on saying that the join has begun: there may be something to undo.
            phase, reason = MembershipPhase.JOINING, MembershipReason.JOIN_FAILED
        self.set_condition(MembershipCondition.JOINED, "False", reason, message)
        self.set(phase=phase)

    def set_joined(self, uid: str, *, credentials_version: str, credentials_end: dt.datetime | None) -> None:
        if not self.joined or self.status.karmada_cluster_uid != uid:
            self.set(joined_at=self._now())
        self.set_condition(MembershipCondition.JOINED, "True", MembershipReason.JOINED)
        ending = ""
        if credentials_end is not None:
            ending = f"the registered credential ends at {credentials_end:%Y-%m-%d %H:%M} UTC, Karmada's own has no end"
        self.set_condition(MembershipCondition.CREDENTIALS_CURRENT, "True", MembershipReason.CURRENT, ending)
        self.set(phase=MembershipPhase.JOINED, karmada_cluster_uid=uid, credentials_version=credentials_version)

    async def write(self) -> bool:
        self.set(observed_generation=self.metadata.generation)
        return await super().write()

    def _now(self) -> dt.datetime:
        return self._context.clock.wall().replace(microsecond=0)
