"""Writes the single condition that a controller owns in the status of an instance."""

from kairship.controllers.global_cluster import INSTANCE, ObservedInstance
from kairship.reconcile import Context, StatusWriter
from kairship.resources import (
    ConditionStatus,
    InstanceCondition,
    InstanceReason,
    InstanceStatus,
    written_by,
)


async def write_instance_condition(
    context: Context,
    instance: ObservedInstance,
    kind: InstanceCondition,
    status: ConditionStatus,
    reason: InstanceReason,
    message: str = "",
) -> bool:
    """Whether the condition is stored; not if the instance has changed since it was read."""
    own = InstanceStatus(conditions=written_by(instance.status.conditions, kind.writer, InstanceCondition))
    writer = StatusWriter(context, INSTANCE, instance.metadata, own)
    writer.set_condition(kind, status, reason, message)
    return await writer.write()
