"""The ``local`` driver: one Karmada as supervised processes on this machine.

An instance is a directory below ``planes/``, keyed by UID, and a group of processes that the supervisor keeps. The
driver holds no state of its own: it reads the record of an instance and returns the steps that lead from there to
what is asked.
"""

import asyncio
import datetime as dt
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kairship.controlplane import snapshot
from kairship.controlplane.karmada import KarmadaSettings
from kairship.controlplane.pki import write_private
from kairship.engine import Engine
from kairship.instances.drivers.driver import Backup, Capabilities, ComponentHealth, DesiredInstance, DriverError
from kairship.instances.drivers.local_instance import LocalInstance
from kairship.instances.drivers.records import Record, Records
from kairship.instances.drivers.steps import Step
from kairship.kube import Connection
from kairship.supervisor import State, SupervisorClient
from kairship.supervisor.layout import Layout

BACKUP_RECORD = "backup.json"


class LocalDriver:
    """Implements ``Driver``."""

    capabilities = Capabilities(
        can_configure=True, can_restart=True, can_upgrade=True, can_backup=True, can_destroy=True, owns_ca=True
    )

    def __init__(self, data_dir: Path, *, engine: Engine, supervisor: SupervisorClient) -> None:
        self._records = Records(data_dir / "planes")
        self._logs = Layout.of(data_dir).logs
        self._engine = engine
        self._supervisor = supervisor

    def versions(self) -> Sequence[str]:
        return self._engine.karmada_versions()

    async def converge(self, desired: DesiredInstance) -> Sequence[Step]:
        self._check_version(desired.settings.version)
        record = self._records.read(desired.uid) or Record(desired.uid, desired.name, desired.settings.version)
        if record.upgrade is not None:
            raise _unfinished(record)
        if record.version != desired.settings.version:
            raise DriverError(f"{record.name} runs Karmada {record.version}: changing the version is an upgrade")
        instance = self._instance(record, desired.settings)
        return [
            Step("prepare", "reserving ports and a directory", instance.prepare),
            Step("certificates", "issuing certificates", instance.certificates),
            Step("control-plane", "starting etcd and the API server", instance.control_plane),
            Step("definitions", "installing Karmada's resource definitions", instance.definitions),
            Step("aggregated-api", "connecting the aggregated API server", instance.aggregated_api),
            Step("admission", "installing roles and admission webhooks", instance.admission),
            Step("controllers", "starting Karmada's controllers", instance.controllers),
            Step("retire", "removing what is no longer wanted", instance.retire),
        ]

    async def upgrade(self, desired: DesiredInstance) -> Sequence[Step]:
        self._check_version(desired.settings.version)
        record = self._records.require(desired.uid)
        if record.upgrade is not None and record.upgrade.to != desired.settings.version:
            raise _unfinished(record)
        instance = self._instance(record, desired.settings)
        return [
            Step("snapshot", "taking a snapshot to return to", instance.begin_upgrade),
            Step("definitions", "upgrading Karmada's resource definitions", instance.definitions),
            *instance.replacements(),
            Step("admission", "upgrading roles and admission webhooks", instance.admission),
            Step("finish", "recording the new version", instance.end_upgrade),
        ]

    async def roll_back(self, desired: DesiredInstance) -> Sequence[Step]:
        record = self._records.require(desired.uid)
        if record.upgrade is None:
            return []
        instance = self._instance(record, msgspec.structs.replace(desired.settings, version=record.version))
        restoring = instance.restoring(instance.upgrade_snapshot, sha256=record.upgrade.sha256, replace_processes=True)
        return [*restoring, Step("finish", "recording the earlier version", instance.end_upgrade)]

    async def delete(self, uid: str) -> Sequence[Step]:
        return [
            Step("processes", "stopping every process", lambda: self._delete_processes(uid)),
            Step("files", "removing data, certificates and keys", lambda: self._delete_files(uid)),
        ]

    async def connection(self, uid: str) -> Connection:
        return (await self._existing(uid).plane()).connection()

    async def health(self, uid: str) -> Sequence[ComponentHealth]:
        statuses = await self._supervisor.status(self._records.require(uid).group)
        return [
            ComponentHealth(
                component=status.name.partition("/")[2],
                healthy=status.state is State.READY,
                reason="" if status.state is State.READY else f"{status.state.value}: {status.reason}",
            )
            for status in statuses
        ]

    async def backup(self, uid: str, directory: Path) -> Backup:
        record = self._records.require(uid)
        file = f"{record.name}.db"
        digest = await snapshot.save(await self._existing(uid).plane(), self._engine, directory / file)
        backup = Backup(
            instance_uid=uid,
            instance_name=record.name,
            version=record.version,
            taken=dt.datetime.now(dt.UTC),
            snapshot=file,
            sha256=digest,
        )
        # Written last: a directory without it holds no finished backup.
        write_private(directory / BACKUP_RECORD, msgspec.json.encode(backup))
        return backup

    async def restore(self, uid: str, backup: Path) -> Sequence[Step]:
        record = self._records.require(uid)
        try:
            content = msgspec.json.decode((backup / BACKUP_RECORD).read_bytes(), type=Backup)
        except (OSError, msgspec.DecodeError) as error:
            raise DriverError(f"{backup} holds no finished backup: {error}") from error
        if content.instance_uid != uid:
            raise DriverError(f"{backup} is a backup of another instance ({content.instance_name})")
        if content.version != record.version:
            raise DriverError(
                f"{backup} was taken at Karmada {content.version}, but {record.name} runs {record.version}: "
                "data of another version cannot be restored into it"
            )
        path = backup / content.snapshot
        return self._existing(uid).restoring(path, sha256=content.sha256, replace_processes=False)

    def _instance(self, record: Record, settings: KarmadaSettings) -> LocalInstance:
        return LocalInstance(record, settings, records=self._records, engine=self._engine, supervisor=self._supervisor)

    def _existing(self, uid: str) -> LocalInstance:
        """An instance as it is, for work that does not depend on its settings."""
        record = self._records.require(uid)
        return self._instance(record, KarmadaSettings(version=record.version))

    def _check_version(self, version: str) -> None:
        if version not in self.versions():
            offered = ", ".join(self.versions()) or "none"
            raise DriverError(f"Karmada {version} is not on offer; available: {offered}")

    async def _delete_processes(self, uid: str) -> None:
        record = self._records.read(uid)
        if record is not None:
            await self._supervisor.delete_group(record.group)
            await asyncio.to_thread(shutil.rmtree, self._logs / record.group, ignore_errors=True)

    async def _delete_files(self, uid: str) -> None:
        await self._supervisor.release_ports(uid)
        await self._records.remove(uid)


def _unfinished(record: Record) -> DriverError:
    target = record.upgrade.to if record.upgrade else record.version
    return DriverError(f"the upgrade of {record.name} to {target} has not ended: resume it or roll it back")
