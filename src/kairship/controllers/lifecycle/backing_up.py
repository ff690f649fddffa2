"""Backups as the spec declares them: a name that is new is taken, a name that went away takes its backup with it.

The record that the driver writes last makes a backup complete. Whoever comes after a kill finds it, or removes what was
begun and takes it again.
"""

from kairship.controllers.lifecycle.work import Work
from kairship.instances import drivers
from kairship.reconcile import RetryableError
from kairship.resources import InstanceCondition, InstanceReason, Operation
from kairship.resources.instance_status import Backup, Phase

_BACKED_UP = InstanceCondition.BACKED_UP


async def keep_backups(work: Work) -> None:
    """Take what is missing and remove what is not wanted. Raises `RetryableError` when a backup failed."""
    journal, wanted = work.journal, [request.name for request in work.spec.backups]
    await _remove_others(work, set(wanted))
    if not wanted:
        journal.drop(_BACKED_UP)
        return
    if not work.driver.capabilities.can_backup:
        message = f"the driver {work.spec.driver} takes no backups"
        journal.state(_BACKED_UP, "False", InstanceReason.NOT_SUPPORTED, message)
        return
    for name in wanted:
        if not _is_complete(work, name):
            await _take(work, name)
    journal.state(_BACKED_UP, "True", InstanceReason.BACKED_UP)


async def _take(work: Work, name: str) -> None:
    journal = work.journal
    if not journal.gives(_BACKED_UP, InstanceReason.BACKUP_FAILED):
        journal.state(_BACKED_UP, "False", InstanceReason.BACKING_UP, name)
    _record(work, Backup(name=name, phase=Phase.RUNNING))
    await journal.show(Operation.BACKUP, step=name, summary=f"taking backup {name}", position=1, total=1)
    try:
        taken = await work.backups.find(work.uid, name)
        if taken is None:
            taken = await work.driver.backup(work.uid, await work.backups.prepare(work.uid, name))
        complete = await _described(work, name, taken)
    except Exception as error:
        work.check_term()
        _record(work, Backup(name=name, phase=Phase.FAILED, message=str(error)[:4000]))
        message = f"backup {name} is tried again: {error}"
        journal.state(_BACKED_UP, "False", InstanceReason.BACKUP_FAILED, message)
        journal.set(operation=None)
        await journal.write()
        journal.announce(InstanceReason.BACKUP_FAILED, message, warning=True)
        raise RetryableError(message) from error
    _record(work, complete)
    journal.set(operation=None)
    await journal.write()
    journal.announce(InstanceReason.BACKED_UP, f"backup {name} was taken")


async def _described(work: Work, name: str, taken: drivers.Backup) -> Backup:
    return Backup(
        name=name,
        phase=Phase.COMPLETED,
        taken_at=taken.taken.replace(microsecond=0),
        version=taken.version,
        size_bytes=await work.backups.size(work.uid, taken, name),
        sha256=taken.sha256,
    )


async def _remove_others(work: Work, wanted: set[str]) -> None:
    for name in await work.backups.names(work.uid) - wanted:
        await work.backups.remove(work.uid, name)
    kept = tuple(backup for backup in work.journal.status.backups if backup.name in wanted)
    work.journal.set(backups=kept)


def _is_complete(work: Work, name: str) -> bool:
    return any(backup.name == name and backup.phase is Phase.COMPLETED for backup in work.journal.status.backups)


def _record(work: Work, backup: Backup) -> None:
    others = [known for known in work.journal.status.backups if known.name != backup.name]
    work.journal.set(backups=tuple(sorted([*others, backup], key=lambda each: each.name)))
