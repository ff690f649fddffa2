"""Deletes an instance: its control plane is destroyed, or released.

Clusters have to leave first. The API server of the plane refuses to delete an instance with members, but a cluster may
join at that very moment, so this waits for memberships too and says so in a condition. Destroying leaves nothing: no
process, no data, no credential, no backup. Releasing leaves everything as it is, with the Secret by which the Karmada
can be adopted again.
"""

from kairship.controllers.global_cluster import MEMBERSHIP, JoinedCluster
from kairship.controllers.lifecycle import credentials
from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.instances.drivers import DriverError, StepFailed
from kairship.reconcile import DONE, Result, RetryableError, RetryAfter
from kairship.resources import InstanceCondition, InstanceReason, Operation

_DELETING = InstanceCondition.DELETING
_RETRY = 30.0  # changes of memberships enqueue the instance at once; this is a safety net


async def delete(operation: InstanceOperation) -> Result:
    """Deletes the instance step by step. Returns `DONE` when the finalizer can be removed."""
    writer = operation.writer
    if joined := await _joined_clusters(operation):
        named = ", ".join(sorted(joined)[:10])
        message = f"clusters are still joined: {named}; remove them first (kubectl delete membership)"
        writer.set_condition(_DELETING, "True", InstanceReason.CLUSTERS_JOINED, message)
        await writer.write()
        return RetryAfter(_RETRY)
    release = operation.spec.release_on_delete or operation.adopts
    if not writer.has_reason(_DELETING, InstanceReason.DELETE_FAILED):
        writer.set_condition(_DELETING, "True", InstanceReason.RELEASING if release else InstanceReason.DESTROYING)
    try:
        await (_release(operation) if release else _destroy(operation))
    except (StepFailed, DriverError, OSError) as error:
        writer.set_condition(_DELETING, "True", InstanceReason.DELETE_FAILED, str(error))
        await writer.write()
        writer.record_event(InstanceReason.DELETE_FAILED, str(error), warning=True)
        raise RetryableError(str(error)) from error
    return DONE


async def _destroy(operation: InstanceOperation) -> None:
    await operation.run(Operation.DELETE, await operation.driver.delete(operation.uid))
    await operation.backups.remove_all(operation.uid)
    await credentials.withdraw(operation)


async def _release(operation: InstanceOperation) -> None:
    if operation.adopts:
        # The Karmada and the Secret by which it was adopted belong to its operator: our own Secret is not needed.
        await operation.run(Operation.DELETE, await operation.driver.delete(operation.uid))
        await credentials.withdraw(operation)
        return
    await operation.writer.write_progress(
        Operation.DELETE, step="release", summary="releasing the instance", position=1, total=1
    )
    await credentials.hand_over(operation)


async def _joined_clusters(operation: InstanceOperation) -> list[str]:
    page = await operation.context.client.typed(JoinedCluster).list(
        MEMBERSHIP, field_selector=f"spec.instance={operation.instance.name}"
    )
    return [membership.metadata.name for membership in page.items]
