"""The ``local`` driver: one Karmada as supervised processes on this machine.

An instance is a directory below ``planes/``, keyed by UID, and a group of processes that the supervisor keeps. The
driver holds no state of its own: it reads the record of an instance and returns the steps that lead from there to the
desired state.
"""

import asyncio
import datetime as dt
import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from kairship.controlplane import etcd_snapshot
from kairship.controlplane.karmada import KarmadaSettings
from kairship.controlplane.pki import write_private
from kairship.engine import Engine
from kairship.instances.drivers.driver import Backup, Capabilities, ComponentHealth, DesiredInstance, DriverError
from kairship.instances.drivers.local.instance_record import Record, Records
from kairship.instances.drivers.local.local_instance import LocalInstance
from kairship.instances.drivers.steps import Step
from kairship.kube import Connection
from kairship.supervisor import State, SupervisorClient
from kairship.supervisor.paths import Layout

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
        record = self._records.read(desired.uid)
        if record is None:
            record = self._new_record(desired)
        _refuse_unfinished(record)
        if record.version != desired.settings.version:
            raise DriverError(f"{record.name} runs Karmada {record.version}: upgrade it to change the version")
        return self._instance(record, desired.settings).converging()

    async def upgrade(self, desired: DesiredInstance) -> Sequence[Step]:
        version = desired.settings.version
        self._check_version(version)
        record = self._records.require(desired.uid)
        resumed = record.upgrade is not None and record.upgrade.to == version and not record.upgrade.abandoned
        if not resumed:
            _refuse_unfinished(record)
            if version == record.version:
                return []
            if _order(version) < _order(record.version):
                raise DriverError(
                    f"{record.name} runs Karmada {record.version}, and {version} is older: it may not understand the "
                    "data of the newer version; choose a newer version"
                )
        return self._instance(record, desired.settings).upgrading()

    async def roll_back(self, desired: DesiredInstance) -> Sequence[Step]:
        record = self._records.require(desired.uid)
        if record.upgrade is None:
            return []
        settings = msgspec.structs.replace(desired.settings, version=record.version)
        return self._instance(record, settings).rolling_back(record.upgrade)

    async def delete(self, uid: str) -> Sequence[Step]:
        return [
            Step("processes", "stopping every process", lambda: self._delete_processes(uid)),
            Step("files", "removing data, certificates and keys", lambda: self._delete_files(uid)),
        ]

    async def connection(self, uid: str) -> Connection:
        plane = await self._existing(uid).plane()
        try:
            return plane.connection()
        except FileNotFoundError as error:
            raise DriverError(f"{plane.name} has no certificates yet: it is still being created") from error

    async def renew_credential(self, uid: str) -> Connection | None:
        return None  # the step `certificates` renews them long before they expire

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

    async def restart(self, uid: str, components: Collection[str]) -> None:
        statuses = await self._supervisor.status(self._records.require(uid).group)
        running = [status.name for status in statuses if status.name.partition("/")[2] in components]
        if running:
            await self._supervisor.restart(*running)

    async def missing(self, desired: DesiredInstance) -> Sequence[str]:
        """Returns the processes that a running instance should have and the supervisor does not know."""
        return await self._instance(self._records.require(desired.uid), desired.settings).missing()

    async def backup(self, uid: str, directory: Path) -> Backup:
        record = self._records.require(uid)
        _refuse_unfinished(record)
        if (directory / BACKUP_RECORD).exists():
            raise DriverError(f"{directory} holds a backup already: choose another directory")
        file = f"{record.name}.db"
        digest = await etcd_snapshot.save(await self._existing(uid).plane(), self._engine, directory / file)
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

    async def restore(self, desired: DesiredInstance, backup: Path) -> Sequence[Step]:
        record = self._records.require(desired.uid)
        if not record.restoring:
            _refuse_unfinished(record)
        try:
            content = msgspec.json.decode((backup / BACKUP_RECORD).read_bytes(), type=Backup)
        except (OSError, msgspec.DecodeError) as error:
            raise DriverError(f"{backup} holds no finished backup: {error}") from error
        if content.instance_uid != record.uid:
            raise DriverError(f"{backup} is a backup of another instance ({content.instance_name})")
        if not content.version == desired.settings.version == record.version:
            raise DriverError(
                f"{backup} was taken at Karmada {content.version}, {record.name} runs {record.version} and is to run "
                f"{desired.settings.version}: data can be restored only into the version that wrote it"
            )
        return self._instance(record, desired.settings).restoring(backup / content.snapshot, sha256=content.sha256)

    def _instance(self, record: Record, settings: KarmadaSettings) -> LocalInstance:
        return LocalInstance(record, settings, records=self._records, engine=self._engine, supervisor=self._supervisor)

    def _new_record(self, desired: DesiredInstance) -> Record:
        # Processes are grouped by name: a second instance of that name would take over those of the first.
        for other in self._records.all():
            if other.name == desired.name:
                raise DriverError(f"there is an instance {desired.name!r} already, with UID {other.uid}")
        return Record(desired.uid, desired.name, desired.settings.version)

    def _existing(self, uid: str) -> LocalInstance:
        """Returns the recorded instance, for work that does not depend on its settings."""
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
            if (logs := self._logs / record.group).exists():
                await asyncio.to_thread(shutil.rmtree, logs)

    async def _delete_files(self, uid: str) -> None:
        await self._supervisor.release_ports(uid)
        await self._records.remove(uid)


def _refuse_unfinished(record: Record) -> None:
    if reason := record.unfinished:
        raise DriverError(reason)


def _order(version: str) -> tuple[int, ...]:
    """v1.18.10 comes after v1.18.9."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))
