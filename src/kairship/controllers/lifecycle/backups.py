"""Takes the backups that the spec lists, and removes those that it does not list any more.

The record that the driver writes last makes a backup complete. After a kill, the next reconcile finds the record, or
removes what was begun and takes the backup again.
"""

from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.instances import drivers
from kairship.reconcile import RetryableError
from kairship.resources import InstanceCondition, InstanceReason, Operation
from kairship.resources.instance_status import Backup, Phase

_BACKED_UP = InstanceCondition.BACKED_UP


async def reconcile_backups(operation: InstanceOperation) -> None:
    """Takes missing backups and removes unlisted ones. Raises `RetryableError` when a backup failed."""
    writer, wanted = operation.writer, [request.name for request in operation.spec.backups]
    await _remove_others(operation, set(wanted))
    if not wanted:
        writer.remove_condition(_BACKED_UP)
        return
    if not operation.driver.capabilities.can_backup:
        message = f"the driver {operation.spec.driver} does not support backups"
        writer.set_condition(_BACKED_UP, "False", InstanceReason.NOT_SUPPORTED, message)
        return
    for name in wanted:
        if not _is_complete(operation, name):
            await _take(operation, name)
    writer.set_condition(_BACKED_UP, "True", InstanceReason.BACKED_UP)


async def _take(operation: InstanceOperation, name: str) -> None:
    writer = operation.writer
    if not writer.has_reason(_BACKED_UP, InstanceReason.BACKUP_FAILED):
        writer.set_condition(_BACKED_UP, "False", InstanceReason.BACKING_UP, name)
    _record(operation, Backup(name=name, phase=Phase.RUNNING))
    await writer.write_progress(Operation.BACKUP, step=name, summary=f"taking backup {name}", position=1, total=1)
    try:
        taken = await operation.backups.find(operation.uid, name)
        if taken is None:
            taken = await operation.driver.backup(operation.uid, await operation.backups.prepare(operation.uid, name))
        complete = await _described(operation, name, taken)
    except Exception as error:
        operation.check_term()
        _record(operation, Backup(name=name, phase=Phase.FAILED, message=str(error)[:4000]))
        message = f"backup {name} failed and is tried again: {error}"
        writer.set_condition(_BACKED_UP, "False", InstanceReason.BACKUP_FAILED, message)
        writer.set(operation=None)
        await writer.write()
        writer.record_event(InstanceReason.BACKUP_FAILED, message, warning=True)
        raise RetryableError(message) from error
    _record(operation, complete)
    writer.set(operation=None)
    await writer.write()
    writer.record_event(InstanceReason.BACKED_UP, f"backup {name} was taken")


async def _described(operation: InstanceOperation, name: str, taken: drivers.Backup) -> Backup:
    return Backup(
        name=name,
        phase=Phase.COMPLETED,
        taken_at=taken.taken.replace(microsecond=0),
        version=taken.version,
        size_bytes=await operation.backups.size(operation.uid, taken, name),
        sha256=taken.sha256,
    )


async def _remove_others(operation: InstanceOperation, wanted: set[str]) -> None:
    for name in await operation.backups.names(operation.uid) - wanted:
        await operation.backups.remove(operation.uid, name)
    kept = tuple(backup for backup in operation.status.backups if backup.name in wanted)
    operation.writer.set(backups=kept)


def _is_complete(operation: InstanceOperation, name: str) -> bool:
    return any(backup.name == name and backup.phase is Phase.COMPLETED for backup in operation.status.backups)


def _record(operation: InstanceOperation, backup: Backup) -> None:
    others = [known for known in operation.status.backups if known.name != backup.name]
    operation.writer.set(backups=tuple(sorted([*others, backup], key=lambda each: each.name)))
