"""Restores an instance to one of its backups: each request exactly once.

The backup is verified first; if it cannot be used, the request ends with nothing changed. Then the request is written
into `status.restore`, and from there it is carried through to its end: once the driver has stopped the instance there
is no way back.
"""

from kairship.controllers.lifecycle import credentials
from kairship.controllers.lifecycle.backup_store import BackupUnusable
from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.controlplane.karmada import KarmadaSettings
from kairship.instances.drivers import DriverError, StepFailed
from kairship.reconcile import RetryableError
from kairship.resources import InstanceCondition, InstanceReason, Operation
from kairship.resources.instance_status import Phase, Restore

_RESTORED = InstanceCondition.RESTORED


async def restore(operation: InstanceOperation, settings: KarmadaSettings) -> None:
    """Carries out the restore that the spec requests, unless that has been done already."""
    writer, request, last = operation.writer, operation.spec.restore, operation.status.restore
    if request is None:
        writer.remove_condition(_RESTORED)
        return
    if last is not None and last.request == request.request:
        return
    if not operation.driver.capabilities.can_backup:
        writer.set_condition(
            _RESTORED, "False", InstanceReason.NOT_SUPPORTED, f"the driver {operation.spec.driver} cannot restore"
        )
        return
    begun = Restore(request=request.request, backup=request.backup, phase=Phase.RUNNING, started_at=writer.now())
    writer.set(restore=begun)
    try:
        await _verify(operation, request.backup)
        await operation.driver.restore(
            operation.desired(settings), operation.backups.directory(operation.uid, request.backup)
        )
    except (BackupUnusable, DriverError) as error:
        await _refuse(operation, str(error))
        return
    writer.set_condition(_RESTORED, "False", InstanceReason.RESTORING, f"to backup {request.backup}")
    await writer.write()
    writer.record_event(InstanceReason.RESTORING, f"to backup {request.backup}")
    await resume(operation, settings)


def is_running(operation: InstanceOperation) -> bool:
    begun = operation.status.restore
    return begun is not None and begun.phase is Phase.RUNNING


async def resume(operation: InstanceOperation, settings: KarmadaSettings) -> None:
    """Carries the restore in the status through to its end."""
    writer, begun = operation.writer, _begun(operation)
    try:
        directory = operation.backups.directory(operation.uid, begun.backup)
        await operation.run(Operation.RESTORE, await operation.driver.restore(operation.desired(settings), directory))
    except (StepFailed, DriverError) as error:
        writer.set_condition(_RESTORED, "False", InstanceReason.RESTORE_FAILED, str(error))
        await writer.write()
        writer.record_event(InstanceReason.RESTORE_FAILED, str(error), warning=True)
        raise RetryableError(str(error)) from error
    await credentials.publish(operation)
    _end(operation, Phase.COMPLETED)
    writer.set_condition(_RESTORED, "True", InstanceReason.RESTORED, f"to backup {begun.backup}")
    await writer.write()
    writer.record_event(InstanceReason.RESTORED, f"to backup {begun.backup}")


async def _refuse(operation: InstanceOperation, message: str) -> None:
    _end(operation, Phase.FAILED, message)
    operation.writer.set_condition(
        _RESTORED, "False", InstanceReason.BACKUP_UNUSABLE, f"nothing was changed: {message}"
    )
    await operation.writer.write()
    operation.writer.record_event(InstanceReason.BACKUP_UNUSABLE, message, warning=True)


async def _verify(operation: InstanceOperation, name: str) -> None:
    for backup in operation.status.backups:
        if backup.name == name and backup.sha256 is not None:
            return await operation.backups.verify(operation.uid, name, sha256=backup.sha256)
    raise BackupUnusable(f"there is no complete backup {name}")


def _end(operation: InstanceOperation, phase: Phase, message: str = "") -> None:
    writer, begun = operation.writer, _begun(operation)
    writer.set(
        operation=None,
        restore=Restore(
            request=begun.request,
            backup=begun.backup,
            phase=phase,
            started_at=begun.started_at,
            finished_at=writer.now(),
            message=message[:4000],
        ),
    )


def _begun(operation: InstanceOperation) -> Restore:
    begun = operation.status.restore
    if begun is None:
        raise AssertionError("no restore has begun")
    return begun
