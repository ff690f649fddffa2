"""The part of an instance's status that the lifecycle controller owns.

It is the controller's memory. An operation is written into the status before it begins, so that after a kill the next
reconcile knows what had begun. Every write names the revision that it replaces. Other controllers write their own
fields of the same status at the same time, so a conflict is no reason to stop, unless the lifecycle's own fields have
changed: then another process is working on this instance, and this one gives up.
"""

import datetime as dt
from typing import ClassVar

import msgspec

from kairship.controllers.global_cluster import INSTANCE
from kairship.reconcile import Context, Metadata, ObjectReference, RetryableError, StatusWriter, sorted_conditions
from kairship.resources import (
    Instance,
    InstanceCondition,
    InstanceReason,
    InstanceStatus,
    Operation,
    Writer,
    is_true,
    written_by,
)
from kairship.resources.instance_status import Progress

_ATTEMPTS = 5


class InstanceStatusWriter(StatusWriter[InstanceStatus]):
    longest_message: ClassVar[int] = 4000

    def __init__(self, context: Context, instance: Instance) -> None:
        read = instance.metadata
        metadata = Metadata(
            name=read.name, uid=read.uid, resource_version=read.resource_version, generation=read.generation
        )
        super().__init__(context, INSTANCE, metadata, _own_part(instance.status))
        self._instance = instance

    @property
    def instance(self) -> Instance:
        """The instance as this reconcile read it, at the revision of the last write.

        Only the revision moves on: an operation ends with the spec that it began with, and the next reconcile takes
        up a newer spec.
        """
        metadata = msgspec.structs.replace(self._instance.metadata, resource_version=self.metadata.resource_version)
        return msgspec.structs.replace(self._instance, metadata=metadata)

    @property
    def generation(self) -> int:
        return self.metadata.generation

    def now(self) -> dt.datetime:
        return self._context.clock.wall().replace(microsecond=0)

    def is_true(self, kind: InstanceCondition) -> bool:
        return is_true(self.status.conditions, kind)

    def has_reason(self, kind: InstanceCondition, reason: InstanceReason) -> bool:
        """Whether the condition has this reason at present."""
        found = self.find_condition(kind)
        return found is not None and found.reason == reason

    async def write_progress(self, operation: Operation, *, step: str, summary: str, position: int, total: int) -> None:
        """Writes which step of an operation begins now."""
        running = self.status.operation
        continues = running is not None and running.operation is operation
        started = running.started_at if running is not None and continues else self.now()
        self.set(
            operation=Progress(
                operation=operation, step=step, position=position, total=total, started_at=started, message=summary
            )
        )
        await self.write()

    async def write(self) -> bool:
        """Writes what has changed since the last write, and always returns True.

        Raises `RetryableError` if another process has changed the lifecycle's fields.
        """
        for _ in range(_ATTEMPTS):
            if await super().write():
                return True
            await self._read_again()
        raise RetryableError("the status changes faster than it can be written")

    def record_event(self, reason: InstanceReason, message: str, *, warning: bool = False) -> None:
        """Records a Kubernetes Event about the instance."""
        about = ObjectReference(INSTANCE.api_version, INSTANCE.kind, self.metadata.name, uid=self.metadata.uid)
        record = self._context.events.warning if warning else self._context.events.normal
        record(about, str(reason), message)

    async def _read_again(self) -> None:
        found = await self._context.client.typed(Instance).get(INSTANCE, self.metadata.name)
        if found.metadata.uid != self.metadata.uid:
            raise RetryableError("another instance has this name now")
        if _own_part(found.status) != self._stored:
            raise RetryableError("another process is working on this instance")
        self.metadata = msgspec.structs.replace(self.metadata, resource_version=found.metadata.resource_version)


def _own_part(status: InstanceStatus) -> InstanceStatus:
    return InstanceStatus(
        observed_generation=status.observed_generation,
        conditions=sorted_conditions(written_by(status.conditions, Writer.LIFECYCLE, InstanceCondition)),
        karmada_version=status.karmada_version,
        endpoint=status.endpoint,
        credentials=status.credentials,
        operation=status.operation,
        upgrade=status.upgrade,
        backups=tuple(sorted(status.backups, key=lambda backup: backup.name)),
        restore=status.restore,
    )
