"""Taking an instance away: destroying its control plane, or letting go of it.

Clusters leave first. The API server refuses the deletion of an instance that has some, but somebody may have joined one
in that very moment, so this waits for memberships too and says so. Destroying leaves nothing: no process, no data, no
credential, no backup. Letting go leaves everything as it is, and the Secret by which it can be adopted.
"""

from kairship.controllers.global_cluster import MEMBERSHIP, JoinedCluster
from kairship.controllers.lifecycle import credentials
from kairship.controllers.lifecycle.work import Work
from kairship.instances.drivers import DriverError, StepFailed
from kairship.reconcile import DONE, Result, RetryableError, RetryAfter
from kairship.resources import InstanceCondition, InstanceReason, Operation

_DELETING = InstanceCondition.DELETING
_LOOK_AGAIN = 30.0  # memberships wake the controller when they go; this is for the case that one is never told


async def delete(work: Work) -> Result:
    """`DONE` when nothing keeps the object any more."""
    journal = work.journal
    if joined := await _joined_clusters(work):
        message = f"joined: {', '.join(sorted(joined)[:10])}; remove them first (kubectl delete membership)"
        journal.state(_DELETING, "True", InstanceReason.CLUSTERS_JOINED, message)
        await journal.write()
        return RetryAfter(_LOOK_AGAIN)
    release = work.spec.release_on_delete or work.adopts
    if not journal.gives(_DELETING, InstanceReason.DELETE_FAILED):
        journal.state(_DELETING, "True", InstanceReason.RELEASING if release else InstanceReason.DESTROYING)
    try:
        await (_let_go(work) if release else _destroy(work))
    except (StepFailed, DriverError, OSError) as error:
        journal.state(_DELETING, "True", InstanceReason.DELETE_FAILED, str(error))
        await journal.write()
        journal.announce(InstanceReason.DELETE_FAILED, str(error), warning=True)
        raise RetryableError(str(error)) from error
    return DONE


async def _destroy(work: Work) -> None:
    await work.run(Operation.DELETE, await work.driver.delete(work.uid))
    await work.backups.remove_all(work.uid)
    await credentials.withdraw(work)


async def _let_go(work: Work) -> None:
    if work.adopts:
        # It was somebody else's all the time, and so is the Secret by which it was adopted: ours is not needed.
        await work.run(Operation.DELETE, await work.driver.delete(work.uid))
        await credentials.withdraw(work)
        return
    await work.journal.show(Operation.DELETE, step="release", summary="letting go", position=1, total=1)
    await credentials.hand_over(work)


async def _joined_clusters(work: Work) -> list[str]:
    page = await work.context.client.list(
        MEMBERSHIP, field_selector=f"spec.instance={work.instance.name}", as_type=JoinedCluster
    )
    return [membership.metadata.name for membership in page.items]
