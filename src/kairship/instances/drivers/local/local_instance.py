"""One Karmada instance of the ``local`` driver: the steps that create, change, upgrade and restore it.

Each public method that returns steps leads from one state to another; the private methods are the steps: idempotent,
bounded in time, and safe to run again after a kill anywhere in them. While data is replaced the processes are deleted
rather than stopped: so the supervisor never starts them on incomplete data, and the steps back to a running instance
are the same that created it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from kairship.controlplane import ControlPlane, PlaneKind, etcd_snapshot, karmada
from kairship.controlplane.karmada import KarmadaSettings
from kairship.engine import Engine
from kairship.instances.drivers.local.bootstrap import Bootstrap
from kairship.instances.drivers.local.instance_record import Record, Records, Upgrade
from kairship.instances.drivers.steps import Step
from kairship.kube import Client
from kairship.supervisor import ProcessSpec, SupervisorClient

READY_TIMEOUT = 120.0


class LocalInstance:
    def __init__(
        self,
        record: Record,
        settings: KarmadaSettings,
        *,
        records: Records,
        engine: Engine,
        supervisor: SupervisorClient,
    ) -> None:
        self._record = record
        self._settings = settings
        self._records = records
        self._engine = engine
        self._supervisor = supervisor

    async def plane(self) -> ControlPlane:
        return ControlPlane(
            kind=PlaneKind.INSTANCE,
            name=self._record.name,
            uid=self._record.uid,
            directory=self._records.directory(self._record.uid),
            ports=await self._supervisor.allocate_ports(self._record.uid, karmada.port_names(self._settings)),
        )

    def converging(self) -> list[Step]:
        return [
            Step("prepare", "reserving ports and a directory", self._prepare),
            Step("certificates", "issuing certificates", self._certificates),
            Step("control-plane", "starting etcd and the API server", self._control_plane),
            Step("definitions", "installing Karmada's resource definitions", self._definitions),
            Step("aggregated-api", "connecting the aggregated API server", self._aggregated_api),
            Step("admission", "installing roles and admission webhooks", self._admission),
            Step("controllers", "starting Karmada's controllers", self._controllers),
            Step("retire", "removing processes that are no longer needed", self._retire),
        ]

    async def missing(self) -> list[str]:
        plane = await self.plane()
        present = {status.name for status in await self._supervisor.status(plane.group)}
        return sorted({spec.name for spec in self._processes(plane)} - present)

    def upgrading(self) -> list[Step]:
        """Upgrades component by component: servers before their clients, and each server's objects right after it."""
        callers = [karmada.CONTROLLER_MANAGER, karmada.SCHEDULER]
        if self._settings.search:
            callers.append(karmada.SEARCH)
        if self._settings.metrics_adapter:
            callers.append(karmada.METRICS_ADAPTER)
        if self._settings.descheduling is not None:
            callers.append(karmada.DESCHEDULER)
        callers += [karmada.estimator_of(cluster) for cluster in sorted(self._settings.running_estimators)]
        return [
            Step("snapshot", "taking a snapshot to return to", self._begin_upgrade),
            Step("certificates", "issuing certificates", self._certificates),
            Step("definitions", "upgrading Karmada's resource definitions", self._definitions),
            self._replacing(karmada.AGGREGATED_APISERVER),
            Step("aggregated-api", "connecting the aggregated API server", self._aggregated_api),
            self._replacing(karmada.WEBHOOK),
            Step("admission", "upgrading roles and admission webhooks", self._admission),
            *map(self._replacing, callers),
            Step("controllers", "connecting new components", self._controllers),
            Step("retire", "removing processes that are no longer needed", self._retire),
            Step("finish", "recording the new version", self._finish),
        ]

    def rolling_back(self, upgrade: Upgrade) -> list[Step]:
        marked = msgspec.structs.replace(self._record, upgrade=msgspec.structs.replace(upgrade, abandoned=True))
        return self._replacing_data(self._upgrade_snapshot, sha256=upgrade.sha256, marked=marked)

    def restoring(self, path: Path, *, sha256: str) -> list[Step]:
        return self._replacing_data(path, sha256=sha256, marked=msgspec.structs.replace(self._record, restoring=True))

    def _replacing_data(self, path: Path, *, sha256: str, marked: Record) -> list[Step]:
        async def verify() -> None:
            await etcd_snapshot.verify(path, sha256=sha256)

        async def unpack() -> None:
            await etcd_snapshot.unpack(await self.plane(), self._engine, path)

        async def stop() -> None:
            self._records.write(marked)
            await self._supervisor.delete_group(self._record.group)

        async def swap() -> None:
            await asyncio.to_thread(etcd_snapshot.put_in_place, await self.plane())

        return [
            Step("verify", "checking the snapshot", verify),
            Step("unpack", "unpacking the snapshot", unpack),
            Step("stop", "stopping the instance", stop),
            Step("swap", "putting the restored data in place", swap),
            *self.converging(),
            Step("finish", "recording that the restore is done", self._finish),
        ]

    def _replacing(self, component: str) -> Step:
        async def replace() -> None:
            plane = await self.plane()
            name = plane.process(component)
            # A component that is enabled together with the upgrade comes with the other controllers, with its API.
            if await self._supervisor.status(name):
                await self._supervisor.put(*(spec for spec in self._processes(plane) if spec.name == name))
                await self._supervisor.wait_ready(name, timeout=READY_TIMEOUT)

        return Step(f"upgrade-{component}", f"replacing {component} by {self._settings.version}", replace)

    async def _prepare(self) -> None:
        if self._records.read(self._record.uid) is None:
            self._records.write(self._record)
        await self.plane()

    async def _certificates(self) -> None:
        await asyncio.to_thread(karmada.ensure_certificates, await self.plane(), self._settings)

    async def _control_plane(self) -> None:
        plane = await self.plane()
        await self._supervisor.put(*karmada.control_plane(plane, self._engine, self._settings))
        await self._supervisor.wait_ready(plane.process("kube-apiserver"), timeout=READY_TIMEOUT)

    async def _definitions(self) -> None:
        async with self._bootstrap() as bootstrap:
            await bootstrap.apply_crds()

    async def _aggregated_api(self) -> None:
        async with self._bootstrap() as bootstrap:
            await bootstrap.apply_aggregated_api()

    async def _admission(self) -> None:
        plane = await self.plane()
        async with self._bootstrap() as bootstrap:
            await bootstrap.apply_roles()
            # As soon as the configuration exists, writes fail until the webhook answers.
            await self._supervisor.wait_ready(plane.process(karmada.WEBHOOK), timeout=READY_TIMEOUT)
            await bootstrap.apply_admission()

    async def _controllers(self) -> None:
        plane = await self.plane()
        async with self._bootstrap() as bootstrap:
            await bootstrap.apply_estimator_services()
            await self._supervisor.put(*karmada.controllers(plane, self._engine, self._settings))
            # Before waiting for the processes: search is not ready until its own API is registered.
            await bootstrap.apply_addon_apis()
            # Not for the whole group: a process that is about to be removed may be unhealthy.
            wanted = [spec.name for spec in self._processes(plane)]
            await self._supervisor.wait_ready(*wanted, timeout=READY_TIMEOUT)
            await bootstrap.wait_addon_apis()

    async def _retire(self) -> None:
        plane = await self.plane()
        wanted = {spec.name for spec in self._processes(plane)}
        present = {status.name for status in await self._supervisor.status(plane.group)}
        if surplus := present - wanted:
            await self._supervisor.delete(*surplus)
        for path in karmada.retired_files(plane, self._settings):
            path.unlink(missing_ok=True)
        if self._records.require(self._record.uid).unfinished is None:
            await self._forget_leftovers()

    async def _begin_upgrade(self) -> None:
        if self._records.require(self._record.uid).upgrade is None:
            digest = await etcd_snapshot.save(await self.plane(), self._engine, self._upgrade_snapshot)
            upgrade = Upgrade(to=self._settings.version, sha256=digest)
            self._records.write(msgspec.structs.replace(self._record, upgrade=upgrade))

    async def _finish(self) -> None:
        """Records that the instance is complete and runs the version of the settings. It cannot be rolled back now."""
        self._records.write(Record(self._record.uid, self._record.name, self._settings.version))
        await self._forget_leftovers()

    async def _forget_leftovers(self) -> None:
        """Deletes what an upgrade or a restore kept for a rollback; a kill right after its end may have left it."""
        self._upgrade_snapshot.unlink(missing_ok=True)
        await asyncio.to_thread(etcd_snapshot.forget_leftovers, await self.plane())

    @property
    def _upgrade_snapshot(self) -> Path:
        return self._records.directory(self._record.uid) / "before-upgrade.db"

    def _processes(self, plane: ControlPlane) -> Sequence[ProcessSpec]:
        return karmada.processes(plane, self._engine, self._settings)

    @asynccontextmanager
    async def _bootstrap(self) -> AsyncIterator[Bootstrap]:
        plane = await self.plane()
        async with Client(plane.connection()) as client:
            yield Bootstrap(client, plane, self._engine, self._settings)
