"""Starts, repairs and stops the whole plane.

`up` starts the global cluster and the members concurrently: they share nothing but the CPU. The demo instance is
created by the controller-manager, as it is for every user who creates an `Instance`. `up` is level-triggered: it
compares what exists with what should exist and does what is missing. On a healthy plane it changes nothing, a broken
plane it repairs, and an `up` that was interrupted it completes. A member that `member stop` stopped stays stopped.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec
import psutil

from kairship.controlplane import ControlPlane, PlaneKind
from kairship.controlplane.pki import write_private
from kairship.embedded import clusters, demo, plane_processes, supervision
from kairship.embedded.demo_instance import DemoInstance
from kairship.embedded.entrance import Entrance
from kairship.embedded.home import ROOM_TO_START, Home, PlaneRecord
from kairship.embedded.kubeconfig import render_kubeconfig
from kairship.embedded.members import MemberError, Members, MemberSpec, MemberState
from kairship.embedded.membership import InstanceMembership
from kairship.embedded.reporter import Reporter
from kairship.engine import Engine, Group
from kairship.instances.drivers import LocalDriver
from kairship.kube import Client, Connection
from kairship.supervisor import NotReady, ProcessStatus, State, SupervisorClient, SupervisorError, Unready
from kairship.supervisor.paths import Layout

FIELD_MANAGER = "kairship-demo"
_UNHEALTHY = (State.UNREADY, State.BACKOFF)
_RUNNING = (State.STARTING, State.READY, State.UNREADY)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `up`."""

    already_running: bool
    """Whether everything was healthy, so that nothing was started."""
    repaired: tuple[str, ...]
    """Processes of a running plane that had to be started or restarted."""
    seconds: float
    global_server: str
    instance_server: str
    """Empty if a user has deleted the demo instance."""
    entrance: Entrance
    members: tuple[str, ...]
    stopped_members: tuple[str, ...]
    """Members that `member stop` stopped."""
    kubeconfig: str
    contexts: tuple[str, ...]


class EmbeddedPlane:
    def __init__(self, home: Home, engine: Engine) -> None:
        self.home = home
        self.supervisor = SupervisorClient(home.root)
        self.driver = LocalDriver(home.root, engine=engine, supervisor=self.supervisor)
        self.members = Members(home.planes, logs=Layout.of(home.root).logs, engine=engine, supervisor=self.supervisor)
        self._engine = engine

    async def up(
        self, reporter: Reporter, demo_members: Sequence[MemberSpec], *, reserved_namespaces: tuple[str, ...] = ()
    ) -> Outcome:
        """Start everything that should run and repair what is broken. A new plane gets the members `demo_members`.

        `reserved_namespaces` replace those of an earlier `up`, unless there are none.
        """
        begin = time.monotonic()
        self._require_binaries()
        record = self.home.open(demo_members=[spec.name for spec in demo_members])
        if reserved_namespaces and reserved_namespaces != record.reserved_namespaces:
            record = msgspec.structs.replace(record, reserved_namespaces=reserved_namespaces)
            self.home.write(record)
        if not supervision.is_running(self.home.root):
            self.home.require_room(ROOM_TO_START)
        was_running = await supervision.ensure(self.home.root, reporter)
        before = _healthy(await self.supervisor.status()) if was_running else {}
        await self._repair(reporter)

        self._register_demo(record)
        try:
            global_server, instance = await self._converge(record, reporter)
        except Exception as error:
            if failed := await self._failed_processes():
                raise NotReady(failed) from error
            raise
        after = _healthy(await self.supervisor.status())
        repaired = tuple(name for name, pid in after.items() if was_running and before.get(name) != pid)
        members = await self.members.overview()
        return Outcome(
            already_running=record.demo_created and was_running and not repaired,
            repaired=repaired if record.demo_created else (),
            seconds=time.monotonic() - begin,
            global_server=global_server,
            instance_server=instance.server if instance else "",
            entrance=await plane_processes.ensure_entrance(self.supervisor, self.home),
            members=tuple(member.spec.name for member in members),
            stopped_members=tuple(member.spec.name for member in members if member.state is MemberState.STOPPED),
            kubeconfig=str(self.home.kubeconfig),
            contexts=await self._write_kubeconfig(),
        )

    async def add_member(self, spec: MemberSpec, reporter: Reporter) -> None:
        if not self.home.read().demo_created:
            raise MemberError("the plane is not complete, so nothing can join it yet: run `kairship up` first")
        self.members.register(spec)
        await self.members.run(spec.name, reporter)
        async with self._demo_membership() as membership:
            await self.members.join(spec.name, membership, reporter)
        await self._write_kubeconfig()

    async def remove_member(self, name: str, reporter: Reporter) -> None:
        async with self._demo_membership() as membership:
            await self.members.remove(name, membership, reporter)
        await self._write_kubeconfig()

    @asynccontextmanager
    async def _demo_membership(self) -> AsyncIterator[InstanceMembership]:
        """The membership of clusters in the demo instance. Raises an error if a user has deleted the instance."""
        async with Client(await self.global_connection()) as client:
            if await self._demo(client).get() is None:
                raise MemberError(_no_demo_instance())
            yield InstanceMembership(client, demo.INSTANCE)

    async def instance_connection(self) -> Connection:
        """A connection to the demo instance as cluster administrator."""
        return await self.driver.connection(await self.instance_uid())

    async def instance_uid(self) -> str:
        async with Client(await self.global_connection()) as client:
            instance = await self._demo(client).get()
        if instance is None:
            raise MemberError(_no_demo_instance())
        return instance.metadata.uid

    async def global_connection(self) -> Connection:
        return (await self._global_plane(self.home.read())).connection()

    def _require_binaries(self) -> None:
        """Raise an error at the beginning, and not half way, if a binary is missing."""
        for component in self._engine.components():
            if component.group is Group.PLANE:
                self._engine.binary(component.name)

    def _register_demo(self, record: PlaneRecord) -> None:
        """Register the members of a new plane, including those that an interrupted `up` has not registered."""
        if not record.demo_created:
            missing = set(record.demo_members) - {spec.name for spec in self.members.specs()}
            for spec in demo.MEMBERS:
                if spec.name in missing:
                    self.members.register(spec)

    async def _repair(self, reporter: Reporter) -> None:
        """Restart the processes that would not become ready by themselves, at least not soon."""
        statuses = await self.supervisor.status()
        unhealthy = [status.name for status in statuses if self._is_unhealthy(status)]
        retrying = [status.name for status in statuses if status.state is State.STARTING and status.last_exit]
        if retrying:
            # A running attempt may fail for a reason that no longer exists. `start` resets its count of failures, so
            # that this failure does not make the process count as hopeless.
            await self.supervisor.start(*retrying)
        if unhealthy:
            reporter.doing("repair", f"restarting {', '.join(unhealthy)}")
            await self.supervisor.restart(*unhealthy)
            with suppress(NotReady):  # it may depend on what is repaired next, and then it is waited for again
                await self.supervisor.wait_ready(*unhealthy, timeout=clusters.READY_TIMEOUT)
            reporter.done("repair", f"restarted {', '.join(unhealthy)}")

    def _is_unhealthy(self, status: ProcessStatus) -> bool:
        if status.state is State.STOPPED:
            return not self.members.owns(status.name)
        return status.state in _UNHEALTHY or (status.state in _RUNNING and _is_suspended(status.pid))

    async def _failed_processes(self) -> tuple[Unready, ...]:
        """The processes because of which `up` failed, without those that only wait for them."""
        try:
            statuses = await self.supervisor.status()
        except SupervisorError:
            return ()  # the error that `up` itself got says more
        return tuple(
            Unready(name=status.name, state=status.state, reason=status.last_exit or status.reason, log=status.log)
            for status in statuses
            if status.state in _UNHEALTHY or (status.state is State.STARTING and status.last_exit)
        )

    async def _converge(self, record: PlaneRecord, reporter: Reporter) -> tuple[str, Connection | None]:
        """Start everything. Returns the address of the global cluster, and a connection to the demo instance."""
        names = [spec.name for spec in self.members.specs()]
        async with asyncio.TaskGroup() as group:
            management = group.create_task(self._management(record, reporter))
            for name in names:
                group.create_task(self.members.run(name, reporter))
        global_server, instance = management.result()
        if instance is not None:
            async with self._demo_membership() as membership, asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(self.members.join(name, membership, reporter))
            if not record.demo_created:
                await self._create_workload(instance, reporter)
        if not record.demo_created:
            self.home.write(msgspec.structs.replace(record, demo_created=True))
        return global_server, instance

    async def _management(self, record: PlaneRecord, reporter: Reporter) -> tuple[str, Connection | None]:
        """Start the global cluster, the plane's own processes, and the demo instance that they create."""
        subject = "global cluster"
        reporter.doing(subject, "starting etcd and the API server")
        plane = await self._global_plane(record)
        await clusters.run(self.supervisor, self._engine, plane)
        reporter.done(subject, plane.server)
        async with Client(plane.connection()) as client:
            await self._run_controllers(client, plane, reporter)
            async with asyncio.TaskGroup() as group:
                ensuring = group.create_task(self._demo(client).ensure(reporter, create=not record.demo_created))
                group.create_task(self._open_entrance(client, reporter, new=not record.demo_created))
        instance = ensuring.result()
        return plane.server, None if instance is None else await self.driver.connection(instance.metadata.uid)

    async def _run_controllers(self, client: Client, plane: ControlPlane, reporter: Reporter) -> None:
        subject = "controllers"
        reporter.doing(subject, "installing our kinds")
        await plane_processes.install(client)
        reporter.doing(subject, "starting the controller-manager")
        processes = await plane_processes.processes(self.supervisor, plane, self.home, self._engine)
        await self.supervisor.put(*processes)
        await self.supervisor.wait_ready(plane_processes.CONTROLLER_MANAGER, timeout=clusters.READY_TIMEOUT)
        reporter.done(subject, "the controller-manager runs")

    async def _open_entrance(self, client: Client, reporter: Reporter, *, new: bool) -> None:
        subject = "API"
        reporter.doing(subject, "starting global management, container management and the apiserver")
        await self.supervisor.wait_ready(
            plane_processes.GHIPPO, plane_processes.KPANDA, plane_processes.APISERVER, timeout=clusters.READY_TIMEOUT
        )
        if new:
            reporter.doing(subject, "waiting for the access binding of the administrator")
            await plane_processes.wait_for_administrator(client)
        reporter.done(subject, (await plane_processes.ensure_entrance(self.supervisor, self.home)).server)

    def _demo(self, client: Client) -> DemoInstance:
        return DemoInstance(client, driver=self.driver, supervisor=self.supervisor)

    async def _write_kubeconfig(self) -> tuple[str, ...]:
        """One kubeconfig with a context for every control plane; the demo instance is the current one."""
        connections = {"global": await self.global_connection()}
        async with Client(connections["global"]) as client:
            if instance := await self._demo(client).get():
                connections = {demo.INSTANCE: await self.driver.connection(instance.metadata.uid)} | connections
        for member in await self.members.overview():
            if member.state is not MemberState.DOWN:  # its certificates may not exist yet
                connections[member.spec.name] = await self.members.connection(member.spec.name)
        write_private(self.home.kubeconfig, render_kubeconfig(connections))
        return tuple(connections)

    async def _global_plane(self, record: PlaneRecord) -> ControlPlane:
        return await clusters.control_plane(
            self.supervisor, self.home.planes, kind=PlaneKind.GLOBAL, name="global", uid=record.global_uid
        )

    async def _create_workload(self, instance: Connection, reporter: Reporter) -> None:
        reporter.doing("demo", "placing a Deployment in the members")
        async with Client(instance) as client:
            for item in demo.workload():
                await client.apply_object(item, field_manager=FIELD_MANAGER)
        reporter.done("demo", "Deployment default/hello, divided over the members")


async def stop_plane(home: Home) -> bool:
    """Stop everything. Returns whether a plane was running. This works without an engine."""
    return await supervision.stop(home.root)


def _no_demo_instance() -> str:
    return (
        f"the instance {demo.INSTANCE} has been deleted, so there is nothing to join or leave: "
        "register and join clusters through the API or with kubectl"
    )


def _healthy(statuses: Sequence[ProcessStatus]) -> dict[str, int | None]:
    return {
        status.name: status.pid for status in statuses if status.state is State.READY and not _is_suspended(status.pid)
    }


def _is_suspended(pid: int | None) -> bool:
    """Whether a signal has stopped the process. The supervisor notices it later, after three failed probes."""
    try:
        return pid is not None and psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False
