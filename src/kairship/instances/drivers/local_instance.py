"""One Karmada instance of the ``local`` driver: the steps that create, change, upgrade and restore it.

Each method is a step: idempotent, bounded in time, and safe to run again after a kill anywhere in it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from kairship.controlplane import ControlPlane, PlaneKind, karmada, snapshot
from kairship.controlplane.karmada import KarmadaSettings
from kairship.engine import Engine
from kairship.instances.drivers.bootstrap import Bootstrap
from kairship.instances.drivers.records import Record, Records, Upgrade
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

    @property
    def upgrade_snapshot(self) -> Path:
        return self._records.directory(self._record.uid) / "before-upgrade.db"

    async def plane(self) -> ControlPlane:
        return ControlPlane(
            kind=PlaneKind.INSTANCE,
            name=self._record.name,
            uid=self._record.uid,
            directory=self._records.directory(self._record.uid),
            ports=await self._supervisor.allocate_ports(self._record.uid, karmada.port_names(self._settings)),
        )

    async def prepare(self) -> None:
        self._records.write(self._record)
        await self.plane()

    async def certificates(self) -> None:
        await asyncio.to_thread(karmada.ensure_certificates, await self.plane(), self._settings)

    async def control_plane(self) -> None:
        plane = await self.plane()
        await self._supervisor.put(*karmada.control_plane(plane, self._engine, self._settings))
        await self._supervisor.wait_ready(plane.process("kube-apiserver"), timeout=READY_TIMEOUT)

    async def definitions(self) -> None:
        async with self._bootstrap() as bootstrap:
            await bootstrap.apply_crds()

    async def aggregated_api(self) -> None:
        async with self._bootstrap() as bootstrap:
            await bootstrap.apply_aggregated_api()

    async def admission(self) -> None:
        plane = await self.plane()
        async with self._bootstrap() as bootstrap:
            await bootstrap.apply_roles()
            # Once the configuration is there, writes fail until the webhook answers.
            await self._supervisor.wait_ready(plane.process(karmada.WEBHOOK), timeout=READY_TIMEOUT)
            await bootstrap.apply_admission()

    async def controllers(self) -> None:
        plane = await self.plane()
        async with self._bootstrap() as bootstrap:
            await bootstrap.apply_estimator_services()
            await self._supervisor.put(*karmada.controllers(plane, self._engine, self._settings))
            await bootstrap.apply_addon_apis()
        await self._supervisor.wait_ready(plane.group, timeout=READY_TIMEOUT)

    async def retire(self) -> None:
        plane = await self.plane()
        wanted = {spec.name for spec in self._specs(plane)}
        present = {status.name for status in await self._supervisor.status(plane.group)}
        if surplus := present - wanted:
            await self._supervisor.delete(*surplus)

    async def begin_upgrade(self) -> None:
        current = self._records.require(self._record.uid)
        if current.upgrade is None:
            digest = await snapshot.save(await self.plane(), self._engine, self.upgrade_snapshot)
            upgrade = Upgrade(to=self._settings.version, sha256=digest)
            self._records.write(msgspec.structs.replace(current, upgrade=upgrade))

    def replacements(self) -> list[Step]:
        """A step for each component that carries Karmada's version: servers before those who call them."""
        components = [karmada.AGGREGATED_APISERVER, karmada.WEBHOOK, karmada.CONTROLLER_MANAGER, karmada.SCHEDULER]
        if self._settings.search:
            components.append(karmada.SEARCH)
        if self._settings.metrics_adapter:
            components.append(karmada.METRICS_ADAPTER)
        if self._settings.descheduling is not None:
            components.append(karmada.DESCHEDULER)
            components += [karmada.estimator_port(cluster) for cluster in sorted(self._settings.estimators)]
        return [
            Step(f"upgrade-{name}", f"replacing {name} by {self._settings.version}", self._replacing(name))
            for name in components
        ]

    async def end_upgrade(self) -> None:
        """Record that the components now run the version of the settings; there is nothing left to return to."""
        self._records.write(Record(self._record.uid, self._record.name, self._settings.version))
        self.upgrade_snapshot.unlink(missing_ok=True)

    def restoring(self, path: Path, *, sha256: str, replace_processes: bool) -> list[Step]:
        async def stop() -> None:
            await self._supervisor.stop(self._record.group)

        async def restore() -> None:
            await snapshot.restore(await self.plane(), self._engine, path, sha256=sha256)

        async def start() -> None:
            plane = await self.plane()
            if replace_processes:
                await self._supervisor.put(*self._specs(plane))
            await self._supervisor.start(plane.group)
            await self._supervisor.wait_ready(plane.group, timeout=READY_TIMEOUT)
            await snapshot.forget_replaced(plane)

        return [
            Step("stop", "stopping the instance", stop),
            Step("restore", "restoring the snapshot", restore),
            Step("start", "starting the instance", start),
        ]

    def _replacing(self, component: str) -> Callable[[], Awaitable[None]]:
        async def replace() -> None:
            plane = await self.plane()
            name = plane.process(component)
            await self._supervisor.put(*(spec for spec in self._specs(plane) if spec.name == name))
            await self._supervisor.wait_ready(name, timeout=READY_TIMEOUT)

        return replace

    def _specs(self, plane: ControlPlane) -> Sequence[ProcessSpec]:
        return [
            *karmada.control_plane(plane, self._engine, self._settings),
            *karmada.controllers(plane, self._engine, self._settings),
        ]

    @asynccontextmanager
    async def _bootstrap(self) -> AsyncIterator[Bootstrap]:
        plane = await self.plane()
        async with Client(plane.connection()) as client:
            yield Bootstrap(client, plane, self._engine, self._settings)
