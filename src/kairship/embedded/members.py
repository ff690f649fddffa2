"""Member clusters: real control planes whose nodes and pods are simulated by kwok.

A member is a record in its directory, a group of processes, and a Membership of the demo instance. The record is
written first, so that `up` completes an addition that was interrupted. It is removed by one rename after the member has
left the instance and its processes are gone, so that a removal can be killed at any point and run again.
"""

import asyncio
import enum
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kairship.controlplane import ControlPlane, PlaneKind
from kairship.controlplane.pki import write_private
from kairship.embedded import clusters, nodes
from kairship.embedded.membership import InstanceMembership, MembershipError
from kairship.embedded.nodes import NodeGroup
from kairship.embedded.reporter import Reporter
from kairship.engine import Engine
from kairship.kube import Client, Connection
from kairship.supervisor import NotRunning, ProcessStatus, State, SupervisorClient

# Karmada probes a member every 10 s, and a member that was down must be healthy for 30 s before it counts as ready.
RETURN_TIMEOUT = 90.0

_RECORD = "member.json"
_LEAVING = ".deleting-"
# Karmada's limit for the name of a cluster.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,46}[a-z0-9])?")
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|Ki|[MGTPE]i?)?")
# The kubeconfig has contexts of these names for the demo instance and the global cluster.
_RESERVED = ("demo", "global")


class MemberError(Exception):
    """The member cannot be added, found or changed; the message says what to do."""


class MemberSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    provider: str
    region: str
    nodes: tuple[NodeGroup, ...]

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group.zone for group in self.nodes))

    def problem(self) -> str | None:
        """Why this specification is not valid, or None if it is."""
        if not _NAME.fullmatch(self.name) or self.name.startswith("k-"):
            return (
                f"{self.name!r} is not a name for a cluster: use up to 48 characters of a-z, 0-9 and '-', "
                "and do not begin with 'k-'"
            )
        if self.name in _RESERVED:
            return f"the name {self.name!r} is used by the plane itself: choose another name"
        for word in (self.provider, self.region, *self.zones):
            if not _LABEL.fullmatch(word):
                return f"{word!r} is not a provider, region or zone: use up to 63 letters, digits and '-_.'"
        for quantity in (amount for group in self.nodes for amount in (group.cpu, group.memory)):
            if not _QUANTITY.fullmatch(quantity):
                return f"{quantity!r} is not an amount of CPU or memory: write for example 8, 500m or 32Gi"
        return None


class MemberState(enum.StrEnum):
    READY = "ready"
    UNREADY = "unready"
    STOPPED = "stopped"
    """The user stopped it. It stays stopped until `member start`."""
    DOWN = "down"
    """No supervisor has a process of it: the plane is down, or the addition of the member was interrupted."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    spec: MemberSpec
    state: MemberState


class _Record(msgspec.Struct, frozen=True):
    uid: str
    spec: MemberSpec

    @property
    def group(self) -> str:
        """The supervisor's name for the member's processes."""
        return f"{PlaneKind.MEMBER.value}-{self.spec.name}"


class Members:
    """Adds, runs, stops and removes the members of one plane."""

    def __init__(self, planes: Path, *, logs: Path, engine: Engine, supervisor: SupervisorClient) -> None:
        self._planes = planes
        self._logs = logs
        self._engine = engine
        self._supervisor = supervisor

    def specs(self) -> list[MemberSpec]:
        return sorted((record.spec for record in self._records()), key=lambda spec: spec.name)

    async def overview(self) -> list[Member]:
        processes = await self._processes()
        records = sorted(self._records(), key=lambda record: record.spec.name)
        return [Member(spec=record.spec, state=_state(record, processes)) for record in records]

    def register(self, spec: MemberSpec) -> None:
        """Write the record of a new member. `run` and `join` do the rest."""
        if problem := spec.problem():
            raise MemberError(problem)
        if self._find(spec.name):
            raise MemberError(
                f"there is already a member {spec.name!r}: choose another name, or remove the member first "
                "(if its addition was interrupted, `kairship up` completes it)"
            )
        record = _Record(uid=str(uuid.uuid4()), spec=spec)
        write_private(self._planes / record.uid / _RECORD, msgspec.json.encode(record))

    async def run(self, name: str, reporter: Reporter) -> None:
        """Run a registered member and create its nodes, unless the user stopped it."""
        subject = _subject(name)
        record = self._require(name)
        if await self._is(MemberState.STOPPED, record):
            reporter.done(subject, f"stopped; `kairship member start {name}` starts it")
            return
        reporter.doing(subject, "starting etcd, API server, controllers and kwok")
        plane = await self._plane(record)
        await clusters.run(self._supervisor, self._engine, plane)
        reporter.doing(subject, "creating nodes")
        async with Client(plane.connection()) as client:
            await nodes.create(client, cluster=name, region=record.spec.region, groups=record.spec.nodes)
        count = sum(group.count for group in record.spec.nodes)
        reporter.done(subject, f"{count} nodes in {record.spec.region}, {plane.server}")

    async def join(self, name: str, membership: InstanceMembership, reporter: Reporter) -> None:
        """Join the member to the instance, and wait until Karmada finds it ready."""
        subject = _subject(name)
        record = self._require(name)
        if await self._is(MemberState.STOPPED, record):
            return
        reporter.doing(subject, "joining the instance")
        plane = await self._plane(record)
        spec = record.spec
        await membership.join(
            name, plane.connection(), provider=spec.provider, region=spec.region, zones=list(spec.zones)
        )
        try:
            await membership.wait_ready(name, lambda missing: reporter.doing(subject, missing), timeout=RETURN_TIMEOUT)
        except MembershipError as error:
            raise MemberError(str(error)) from error
        reporter.done(subject, f"joined, {plane.server}")

    async def remove(self, name: str, membership: InstanceMembership, reporter: Reporter) -> None:
        """Remove the member from the instance, and delete its processes and its data."""
        subject = _subject(name)
        record = self._require(name)
        reporter.doing(subject, "leaving the instance")
        await membership.leave(name, force=not await self._is(MemberState.READY, record))
        reporter.doing(subject, "deleting processes and data")
        await self._supervisor.delete_group(record.group)
        await self._supervisor.release_ports(record.uid)
        await asyncio.to_thread(self._delete, record)
        reporter.done(subject, "removed")

    async def stop(self, name: str, reporter: Reporter) -> None:
        subject = _subject(name)
        group = self._require(name).group
        reporter.doing(subject, "stopping every process")
        await self._supervisor.stop(group)
        reporter.done(subject, "stopped")

    async def start(self, name: str, reporter: Reporter) -> None:
        subject = _subject(name)
        group = self._require(name).group
        reporter.doing(subject, "starting etcd, API server, controllers and kwok")
        await self._supervisor.start(group)
        await self._supervisor.wait_ready(group, timeout=clusters.READY_TIMEOUT)
        reporter.done(subject, "started")

    def owns(self, process: str) -> bool:
        """Whether the process of this name belongs to a member."""
        return any(process.startswith(f"{record.group}/") for record in self._records())

    async def connection(self, name: str) -> Connection:
        return (await self._plane(self._require(name))).connection()

    async def _processes(self, group: str | None = None) -> list[ProcessStatus]:
        try:
            return await self._supervisor.status(group)
        except NotRunning:
            return []

    async def _is(self, state: MemberState, record: _Record) -> bool:
        return _state(record, await self._processes(record.group)) is state

    async def _plane(self, record: _Record) -> ControlPlane:
        return await clusters.control_plane(
            self._supervisor, self._planes, kind=PlaneKind.MEMBER, name=record.spec.name, uid=record.uid
        )

    def _delete(self, record: _Record) -> None:
        shutil.rmtree(self._logs / record.group, ignore_errors=True)
        (self._planes / record.uid).rename(self._planes / f"{_LEAVING}{record.uid}")
        for leaving in self._planes.glob(f"{_LEAVING}*"):  # including those of removals that were killed here
            shutil.rmtree(leaving, ignore_errors=True)

    def _records(self) -> Iterator[_Record]:
        for path in _record_files(self._planes):
            try:
                yield msgspec.json.decode(path.read_bytes(), type=_Record)
            except msgspec.DecodeError as error:
                raise MemberError(f"{path} is damaged ({error}): restore it, or delete {path.parent}") from error

    def _find(self, name: str) -> _Record | None:
        return next((record for record in self._records() if record.spec.name == name), None)

    def _require(self, name: str) -> _Record:
        record = self._find(name)
        if record is None:
            known = ", ".join(spec.name for spec in self.specs()) or "none"
            raise MemberError(f"there is no member {name!r}; the members are: {known}")
        return record


def _state(record: _Record, processes: Iterable[ProcessStatus]) -> MemberState:
    states = {process.state for process in processes if process.name.startswith(f"{record.group}/")}
    if not states:
        return MemberState.DOWN
    if State.STOPPED in states:
        return MemberState.STOPPED
    return MemberState.READY if states == {State.READY} else MemberState.UNREADY


def member_names(planes: Path) -> Iterable[str]:
    """The names of all members, for shell completion. Records that cannot be read are skipped."""
    for path in _record_files(planes):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=_Record).spec.name
        except (OSError, msgspec.DecodeError):
            continue


def _record_files(planes: Path) -> list[Path]:
    return sorted(path for path in planes.glob(f"*/{_RECORD}") if not path.parent.name.startswith(_LEAVING))


def _subject(name: str) -> str:
    return f"member {name}"
