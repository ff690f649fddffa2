"""What the lifecycle controller has written into the status of one instance, and how it writes more.

It is the controller's memory: what is about to be done is written before it is done, so that whoever comes after a
kill knows what had begun. Every write names the revision that it replaces. Others write their own fields of the same
status at the same time, so a conflict is no reason to stop, unless the lifecycle's own fields have changed: then
somebody else is at work on this instance, and this one leaves it to them.
"""

import datetime as dt
from typing import Any

import msgspec

from kairship.controllers.global_cluster import INSTANCE
from kairship.kube import Conflict
from kairship.reconcile import Context, ObjectReference, RetryableError
from kairship.resources import (
    Condition,
    ConditionStatus,
    Instance,
    InstanceCondition,
    InstanceReason,
    InstanceStatus,
    Operation,
    Writer,
    find_condition,
    is_true,
    set_condition,
    status_patch,
    written_by,
)
from kairship.resources.instance_status import Progress

_ATTEMPTS = 5
_LONGEST_MESSAGE = 4000


class Journal:
    def __init__(self, context: Context, instance: Instance) -> None:
        self.instance = instance
        self.status = _own_part(instance.status)
        self._written = self.status
        self._context = context

    @property
    def generation(self) -> int:
        return self.instance.metadata.generation

    def now(self) -> dt.datetime:
        return self._context.clock.wall().replace(microsecond=0)

    def condition(self, kind: InstanceCondition) -> Condition | None:
        return find_condition(self.status.conditions, kind)

    def holds(self, kind: InstanceCondition) -> bool:
        return is_true(self.status.conditions, kind)

    def gives(self, kind: InstanceCondition, reason: InstanceReason) -> bool:
        """Whether the condition has this reason at present."""
        found = self.condition(kind)
        return found is not None and found.reason == reason

    def set(self, **fields: Any) -> None:
        """Change fields of the status. `write` makes it known."""
        self.status = msgspec.structs.replace(self.status, **fields)

    def state(
        self, kind: InstanceCondition, status: ConditionStatus, reason: InstanceReason, message: str = ""
    ) -> None:
        """Change a condition. `write` makes it known."""
        conditions = set_condition(
            self.status.conditions,
            kind,
            status,
            reason,
            message=message[:_LONGEST_MESSAGE],
            generation=self.generation,
            now=self._context.clock.wall(),
        )
        self.set(conditions=_in_order(conditions))

    def drop(self, kind: InstanceCondition) -> None:
        """Say nothing about this aspect any more."""
        self.set(conditions=tuple(each for each in self.status.conditions if each.type != kind))

    async def show(self, operation: Operation, *, step: str, summary: str, position: int, total: int) -> None:
        """Make known which step of an operation begins now."""
        running = self.status.operation
        goes_on = running is not None and running.operation is operation
        started = running.started_at if running is not None and goes_on else self.now()
        self.set(
            operation=Progress(
                operation=operation, step=step, position=position, total=total, started_at=started, message=summary
            )
        )
        await self.write()

    async def write(self) -> None:
        """Write what has changed since the last write; nothing if nothing has."""
        for _ in range(_ATTEMPTS):
            if self.status == self._written:
                return
            patch: dict[str, Any] = msgspec.to_builtins(status_patch(self.instance, self.status))
            try:
                stored = await self._context.owner.apply(INSTANCE, patch, subresource="status")
            except Conflict:
                await self._read_again()
                continue
            self._written = self.status
            self._move_on(stored["metadata"]["resourceVersion"])
            return
        raise RetryableError("the status changes faster than it can be written")

    def announce(self, reason: InstanceReason, message: str, *, warning: bool = False) -> None:
        """An event of the instance, for people who look at what happened."""
        about = ObjectReference(INSTANCE.api_version, INSTANCE.kind, self.instance.name, uid=self.instance.metadata.uid)
        record = self._context.events.warning if warning else self._context.events.normal
        record(about, str(reason), message)

    async def _read_again(self) -> None:
        found = await self._context.client.get(INSTANCE, self.instance.name, as_type=Instance)
        if found.metadata.uid != self.instance.metadata.uid:
            raise RetryableError("another instance has this name now")
        if _own_part(found.status) != self._written:
            raise RetryableError("somebody else is at work on this instance")
        self._move_on(found.metadata.resource_version)

    def _move_on(self, revision: str) -> None:
        # To the revision alone: what is being done goes on as it began, a newer spec is looked at when it has ended.
        metadata = msgspec.structs.replace(self.instance.metadata, resource_version=revision)
        self.instance = msgspec.structs.replace(self.instance, metadata=metadata)


def _own_part(status: InstanceStatus) -> InstanceStatus:
    return InstanceStatus(
        observed_generation=status.observed_generation,
        conditions=_in_order(written_by(status.conditions, Writer.LIFECYCLE, InstanceCondition)),
        karmada_version=status.karmada_version,
        endpoint=status.endpoint,
        credentials=status.credentials,
        operation=status.operation,
        upgrade=status.upgrade,
        backups=tuple(sorted(status.backups, key=lambda backup: backup.name)),
        restore=status.restore,
    )


def _in_order(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The server merges the lists of several writers and promises no order."""
    return tuple(sorted(conditions, key=lambda condition: condition.type))
