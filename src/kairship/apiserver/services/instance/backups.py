"""The backups of an instance. Its spec declares them by name; a restore is a request with an identifier in the spec."""

from typing import Any

from protobuf.wkt import Empty

from kairship.apiserver.services.instance.base import InstanceServiceBase, refuse_adopted
from kairship.apiserver.services.instance.view import backup_view, instance_view
from kairship.gen.kairship.instance.v1alpha1.instance_pb import Instance
from kairship.gen.kairship.instance.v1alpha1.lifecycle_pb import (
    Backup,
    CreateBackupRequest,
    DeleteBackupRequest,
    ListBackupsRequest,
    ListBackupsResponse,
    RestoreInstanceRequest,
)
from kairship.resources import instance_status as own
from kairship.resources.instance import BackupRequest
from kairship.rpc.calls import Call
from kairship.rpc.errors import AlreadyExists, FailedPrecondition, NotFound, ResourceExhausted
from kairship.rpc.resource_cache import SeenInstance

_MAX_BACKUPS = 64


class InstanceBackups(InstanceServiceBase):
    async def list_backups(self, request: ListBackupsRequest, call: Call) -> ListBackupsResponse:
        found = backups_of(await self._caches.instances.require(request.instance, call))
        return ListBackupsResponse(items=sorted(found, key=lambda each: (-each.taken_at, each.name)))

    async def create_backup(self, request: CreateBackupRequest, call: Call) -> Backup:
        def change(current: SeenInstance) -> dict[str, Any] | None:
            refuse_adopted(current, "back it up")
            if _declares(current, request.name):
                return None
            if len(current.spec.backups) >= _MAX_BACKUPS:
                raise ResourceExhausted(
                    f"instance {request.instance} has {_MAX_BACKUPS} backups, the most that an instance can have: "
                    "delete one first"
                )
            return {"backups": _listed((*current.spec.backups, BackupRequest(name=request.name)))}

        changed = await self._change(request.instance, change, call)
        return next(backup for backup in backups_of(changed) if backup.name == request.name)

    async def delete_backup(self, request: DeleteBackupRequest, call: Call) -> Empty:
        def change(current: SeenInstance) -> dict[str, Any]:
            _require(current, request.name)
            kept = tuple(each for each in current.spec.backups if each.name != request.name)
            wanted: dict[str, Any] = {"backups": _listed(kept)}
            restore, done = current.spec.restore, current.status.restore
            if restore is not None and restore.backup == request.name:
                if done is None or done.request != restore.request or done.phase is own.Phase.RUNNING:
                    raise FailedPrecondition(
                        f"instance {request.instance} is being restored from backup {request.name}: "
                        "wait until that has ended"
                    )
                wanted["restore"] = None
            return wanted

        await self._change(request.instance, change, call)
        return Empty()

    async def restore_instance(self, request: RestoreInstanceRequest, call: Call) -> Instance:
        def change(current: SeenInstance) -> dict[str, Any] | None:
            refuse_adopted(current, "restore it")
            _require(current, request.name)
            for known in (current.spec.restore, current.status.restore):
                if known is not None and known.request == request.request:
                    if known.backup != request.name:
                        raise AlreadyExists(
                            f"request {request.request} was a restore of backup {known.backup}: use another identifier"
                        )
                    return None
            [backup] = (each for each in backups_of(current) if each.name == request.name)
            if backup.phase is not Backup.Phase.COMPLETED:
                raise FailedPrecondition(f"backup {request.name} is not complete: {backup.message or 'wait for it'}")
            return {"restore": {"request": request.request, "backup": request.name}}

        return instance_view(await self._change(request.instance, change, call))


def backups_of(instance: SeenInstance) -> list[Backup]:
    """Returns the declared backups. One that the controller has not begun yet is shown as running."""
    known = {backup.name: backup for backup in instance.status.backups}
    return [
        backup_view(known[request.name])
        if request.name in known
        else Backup(name=request.name, phase=Backup.Phase.RUNNING)
        for request in instance.spec.backups
    ]


def _declares(instance: SeenInstance, name: str) -> bool:
    return any(backup.name == name for backup in instance.spec.backups)


def _require(instance: SeenInstance, name: str) -> None:
    if not _declares(instance, name):
        raise NotFound(f"instance {instance.metadata.name} has no backup {name}")


def _listed(backups: tuple[BackupRequest, ...]) -> list[dict[str, str]]:
    return [{"name": backup.name} for backup in backups]
