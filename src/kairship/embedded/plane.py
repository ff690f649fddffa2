"""Bringing the whole plane up and down.

`up` starts every control plane at once: they share nothing but the two cores. It is level-triggered: it looks at what
is there and does what is missing, so a second `up` on a healthy plane changes nothing, and on a broken one repairs.
"""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from kairship.controlplane import ControlPlane, PlaneKind
from kairship.controlplane.karmada import KarmadaSettings
from kairship.controlplane.pki import write_private
from kairship.embedded import clusters, demo
from kairship.embedded.home import Home, PlaneRecord
from kairship.embedded.kubeconfig import render_kubeconfig
from kairship.embedded.members import Members, MemberSpec
from kairship.embedded.report import Reporter, StepReporter
from kairship.engine import Engine
from kairship.instances.drivers import DesiredInstance, LocalDriver, run_steps
from kairship.kube import Client, Connection
from kairship.supervisor import ProcessStatus, State, SupervisorClient, daemon
from kairship.supervisor.layout import Layout

SUPERVISOR_TIMEOUT = 30.0
FIELD_MANAGER = "kairship-demo"
_SICK = (State.UNREADY, State.BACKOFF)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What `up` has brought about."""

    already_running: bool
    repaired: tuple[str, ...]
    seconds: float
    global_server: str
    instance_server: str
    members: tuple[str, ...]
    kubeconfig: str
    contexts: tuple[str, ...]


class EmbeddedPlane:
    def __init__(self, home: Home, engine: Engine) -> None:
        self.home = home
        self.supervisor = SupervisorClient(home.root)
        self.driver = LocalDriver(home.root, engine=engine, supervisor=self.supervisor)
        self.members = Members(home.planes, logs=Layout.of(home.root), engine=engine, supervisor=self.supervisor)
        self._engine = engine

    async def up(self, reporter: Reporter, demo_members: Sequence[MemberSpec]) -> Outcome:
        """Bring everything to where it should be. ``demo_members`` are the members of a plane that has none yet."""
        begin = time.monotonic()
        record = self.home.open()
        was_running = daemon.is_running(self.home.root)
        if not was_running:
            reporter.doing("supervisor", "starting")
            await daemon.start(self.home.root, timeout=SUPERVISOR_TIMEOUT)
        repaired = await self._repair() if was_running else ()
        before = await self.supervisor.status() if was_running else []

        wanted = self.members.specs() if record.demo_created else demo_members
        async with asyncio.TaskGroup() as group:
            global_cluster = group.create_task(self._global_cluster(record, reporter))
            instance = group.create_task(self._instance(record, reporter))
            for spec in wanted:
                group.create_task(self.members.ensure(spec, reporter))
        connection = instance.result()
        async with asyncio.TaskGroup() as group:
            for spec in wanted:
                group.create_task(self.members.join(spec.name, connection, reporter))
        if not record.demo_created:
            await self._create_demo(connection, reporter)
            self.home.write(msgspec.structs.replace(record, demo_created=True))

        contexts = await self._write_kubeconfig()
        return Outcome(
            already_running=was_running and not repaired and _same(before, await self.supervisor.status()),
            repaired=tuple(repaired),
            seconds=time.monotonic() - begin,
            global_server=global_cluster.result().server,
            instance_server=connection.server,
            members=tuple(spec.name for spec in wanted),
            kubeconfig=str(self.home.kubeconfig),
            contexts=contexts,
        )

    async def add_member(self, spec: MemberSpec, reporter: Reporter) -> None:
        self.members.check_new(spec)
        await self.members.ensure(spec, reporter)
        await self.members.join(spec.name, await self.instance_connection(), reporter)
        await self._write_kubeconfig()

    async def remove_member(self, name: str, reporter: Reporter) -> None:
        await self.members.remove(name, await self.instance_connection(), reporter)
        await self._write_kubeconfig()

    async def instance_connection(self) -> Connection:
        return await self.driver.connection(self.home.read().instance_uid)

    async def global_connection(self) -> Connection:
        return (await self._global_plane(self.home.read())).connection()

    async def _write_kubeconfig(self) -> tuple[str, ...]:
        """One kubeconfig with a context for every control plane; the demo instance is the current one."""
        connections = {
            demo.INSTANCE: await self.instance_connection(),
            "global": await self.global_connection(),
            **{spec.name: await self.members.connection(spec.name) for spec in self.members.specs()},
        }
        write_private(self.home.kubeconfig, render_kubeconfig(connections))
        return tuple(connections)

    async def _repair(self) -> list[str]:
        """Restart what is not well by itself: processes that hang, and those that wait to be tried again."""
        sick = [status.name for status in await self.supervisor.status() if status.state in _SICK]
        if sick:
            await self.supervisor.restart(*sick)
        return sick

    async def _global_cluster(self, record: PlaneRecord, reporter: Reporter) -> ControlPlane:
        subject = "global cluster"
        reporter.doing(subject, "starting etcd and the API server")
        plane = await self._global_plane(record)
        await clusters.run(self.supervisor, self._engine, plane)
        reporter.done(subject, plane.server)
        return plane

    async def _global_plane(self, record: PlaneRecord) -> ControlPlane:
        return await clusters.control_plane(
            self.supervisor, self.home.planes, kind=PlaneKind.GLOBAL, name="global", uid=record.global_uid
        )

    async def _instance(self, record: PlaneRecord, reporter: Reporter) -> Connection:
        subject = f"instance {demo.INSTANCE}"
        settings = KarmadaSettings(version=self.driver.versions()[0])
        desired = DesiredInstance(uid=record.instance_uid, name=demo.INSTANCE, settings=settings)
        await run_steps(await self.driver.converge(desired), StepReporter(reporter, subject))
        connection = await self.driver.connection(record.instance_uid)
        reporter.done(subject, f"Karmada {settings.version}, {connection.server}")
        return connection

    async def _create_demo(self, instance: Connection, reporter: Reporter) -> None:
        reporter.doing("demo", "placing a Deployment in the members")
        async with Client(instance) as client:
            for item in demo.workload():
                await client.apply_object(item, field_manager=FIELD_MANAGER)
        reporter.done("demo", "Deployment default/hello, divided over the members")


async def stop_plane(home: Home) -> bool:
    """Stop everything. Says whether there was something to stop; needs no engine, so it works without one."""
    if not daemon.is_running(home.root):
        return False
    await daemon.stop(home.root)
    return True


def _same(before: list[ProcessStatus], after: list[ProcessStatus]) -> bool:
    return {status.name: status.pid for status in before} == {status.name: status.pid for status in after}
