"""How a controller with one condition of its own tells it to an instance."""

from kairship.controllers.global_cluster import INSTANCE, ObservedInstance
from kairship.reconcile import Context
from kairship.resources import (
    ConditionStatus,
    InstanceCondition,
    InstanceReason,
    InstanceStatus,
    set_condition,
    written_by,
)


async def tell(
    context: Context,
    instance: ObservedInstance,
    kind: InstanceCondition,
    status: ConditionStatus,
    reason: InstanceReason,
    message: str = "",
) -> bool:
    """Whether it is written; not if the instance has changed since it was read. Nothing is written twice."""
    own = written_by(instance.status.conditions, kind.writer, InstanceCondition)
    conditions = set_condition(
        own,
        kind,
        status,
        reason,
        message=message,
        generation=instance.metadata.generation,
        now=context.clock.wall(),
    )
    if conditions == own:
        return True
    return await context.owner.apply_status(INSTANCE, instance.metadata, InstanceStatus(conditions=conditions))
