"""Bringing an instance back to one of its backups: each request exactly once.

A backup that cannot be used is found out first, and ends the request with nothing changed. Then the request is written
into `status.restore`, and from there it is carried through to its end: once the driver has stopped the instance there
is no other way out.
"""

from kairship.controllers.lifecycle import credentials
from kairship.controllers.lifecycle.backup_store import Unusable
from kairship.controllers.lifecycle.work import Work
from kairship.controlplane.karmada import KarmadaSettings
from kairship.instances.drivers import DriverError, StepFailed
from kairship.reconcile import RetryableError
from kairship.resources import InstanceCondition, InstanceReason, Operation
from kairship.resources.instance_status import Phase, Restore

_RESTORED = InstanceCondition.RESTORED


async def restore(work: Work, settings: KarmadaSettings) -> None:
    """Carry out the restore that the spec asks for, unless it has been already."""
    journal, asked, last = work.journal, work.spec.restore, work.journal.status.restore
    if asked is None:
        journal.drop(_RESTORED)
        return
    if last is not None and last.request == asked.request:
        return
    if not work.driver.capabilities.can_backup:
        journal.state(_RESTORED, "False", InstanceReason.NOT_SUPPORTED, f"the driver {work.spec.driver} cannot restore")
        return
    begun = Restore(request=asked.request, backup=asked.backup, phase=Phase.RUNNING, started_at=journal.now())
    journal.set(restore=begun)
    try:
        await _verify(work, asked.backup)
        await work.driver.restore(work.desired(settings), work.backups.place(work.uid, asked.backup))
    except (Unusable, DriverError) as error:
        await _refuse(work, str(error))
        return
    journal.state(_RESTORED, "False", InstanceReason.RESTORING, f"to backup {asked.backup}")
    await journal.write()
    journal.announce(InstanceReason.RESTORING, f"to backup {asked.backup}")
    await resume(work, settings)


def is_running(work: Work) -> bool:
    begun = work.journal.status.restore
    return begun is not None and begun.phase is Phase.RUNNING


async def resume(work: Work, settings: KarmadaSettings) -> None:
    """Go on with the restore that the status tells of, to its end."""
    journal, begun = work.journal, _begun(work)
    try:
        place = work.backups.place(work.uid, begun.backup)
        await work.run(Operation.RESTORE, await work.driver.restore(work.desired(settings), place))
    except (StepFailed, DriverError) as error:
        journal.state(_RESTORED, "False", InstanceReason.RESTORE_FAILED, str(error))
        await journal.write()
        journal.announce(InstanceReason.RESTORE_FAILED, str(error), warning=True)
        raise RetryableError(str(error)) from error
    await credentials.publish(work)
    _end(work, Phase.COMPLETED)
    journal.state(_RESTORED, "True", InstanceReason.RESTORED, f"to backup {begun.backup}")
    await journal.write()
    journal.announce(InstanceReason.RESTORED, f"to backup {begun.backup}")


async def _refuse(work: Work, message: str) -> None:
    _end(work, Phase.FAILED, message)
    work.journal.state(_RESTORED, "False", InstanceReason.BACKUP_UNUSABLE, f"nothing was changed: {message}")
    await work.journal.write()
    work.journal.announce(InstanceReason.BACKUP_UNUSABLE, message, warning=True)


async def _verify(work: Work, name: str) -> None:
    for backup in work.journal.status.backups:
        if backup.name == name and backup.sha256 is not None:
            return await work.backups.verify(work.uid, name, sha256=backup.sha256)
    raise Unusable(f"there is no finished backup {name}")


def _end(work: Work, phase: Phase, message: str = "") -> None:
    journal, begun = work.journal, _begun(work)
    journal.set(
        operation=None,
        restore=Restore(
            request=begun.request,
            backup=begun.backup,
            phase=phase,
            started_at=begun.started_at,
            finished_at=journal.now(),
            message=message[:4000],
        ),
    )


def _begun(work: Work) -> Restore:
    begun = work.journal.status.restore
    if begun is None:
        raise AssertionError("no restore has begun")
    return begun
