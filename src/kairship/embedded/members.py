"""Member clusters: real control planes whose nodes and pods are played by kwok.

A member is a record in its directory, a group of processes, and a membership in the demo instance. The record comes
first and goes last, so `add` and `remove` can be killed anywhere and run again.
"""

import asyncio
import re
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from kairship.controlplane import ControlPlane, PlaneKind
from kairship.controlplane.pki import write_private
from kairship.embedded import clusters
from kairship.embedded.report import Reporter
from kairship.engine import Engine
from kairship.instances import membership
from kairship.kube import AlreadyExists, Client, Connection, kinds
from kairship.supervisor import State, SupervisorClient
from kairship.supervisor.layout import Layout

_RECORD = "member.json"
# Karmada's limit for the name of a cluster.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,46}[a-z0-9])?")


class MemberError(Exception):
    """The member cannot be added, found or changed; the message says what to do."""


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are alike."""

    zone: str
    count: int
    cpu: str
    memory: str


class MemberSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    provider: str
    region: str
    nodes: tuple[NodeGroup, ...]

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group.zone for group in self.nodes))


class _Record(msgspec.Struct, frozen=True):
    uid: str
    spec: MemberSpec


class Members:
    """The members of one plane."""

    def __init__(self, planes: Path, *, logs: Layout, engine: Engine, supervisor: SupervisorClient) -> None:
        self._planes = planes
        self._logs = logs
        self._engine = engine
        self._supervisor = supervisor

    def specs(self) -> list[MemberSpec]:
        return sorted((record.spec for record in self._records()), key=lambda spec: spec.name)

    def check_new(self, spec: MemberSpec) -> None:
        if not _NAME.fullmatch(spec.name) or spec.name.startswith("k-"):
            raise MemberError(
                f"{spec.name!r} cannot name a cluster: up to 48 of a-z, 0-9 and '-', not starting with 'k-'"
            )
        if any(spec.name == existing.name for existing in self.specs()):
            raise MemberError(f"there is a member {spec.name!r} already: choose another name, or remove it first")

    async def ensure(self, spec: MemberSpec, reporter: Reporter) -> None:
        """Run the member and its nodes; a member that exists keeps the specification it was made with."""
        subject = f"member {spec.name}"
        record = self._find(spec.name)
        if record is None:
            record = _Record(uid=str(uuid.uuid4()), spec=spec)
            write_private(self._planes / record.uid / _RECORD, msgspec.json.encode(record))
        plane = await self._plane(record)
        if await self._is_stopped(plane):
            reporter.done(subject, f"stopped (kairship member start {spec.name})")
            return
        reporter.doing(subject, "starting etcd, API server, controllers and kwok")
        await clusters.run(self._supervisor, self._engine, plane)
        reporter.doing(subject, "creating nodes")
        async with Client(plane.connection()) as client:
            await _create_nodes(client, record.spec)
        nodes = sum(group.count for group in record.spec.nodes)
        reporter.done(subject, f"{nodes} nodes in {record.spec.region}, {plane.server}")

    async def join(self, name: str, instance: Connection, reporter: Reporter) -> None:
        """Make the member a cluster of the instance, and wait until Karmada finds it ready."""
        subject = f"member {name}"
        record = self._require(name)
        plane = await self._plane(record)
        if await self._is_stopped(plane):
            return
        wanted = membership.Join(
            name=name,
            provider=record.spec.provider,
            region=record.spec.region,
            zones=record.spec.zones,
            labels={"kairship.io/demo": "true"},
        )
        reporter.doing(subject, "joining the instance")
        async with Client(instance) as karmada, Client(plane.connection()) as client:
            await membership.join(instance=karmada, member=client, reached_at=plane.connection(), wanted=wanted)
            await membership.wait_ready(karmada, name)
        reporter.done(subject, f"joined, {plane.server}")

    async def remove(self, name: str, instance: Connection | None, reporter: Reporter) -> None:
        """Take the member out of the instance and delete everything of it."""
        subject = f"member {name}"
        record = self._require(name)
        plane = await self._plane(record)
        if instance is not None:
            reporter.doing(subject, "leaving the instance")
            async with Client(instance) as karmada:
                if await self._is_stopped(plane):
                    await membership.leave(instance=karmada, member=None, name=name)
                else:
                    async with Client(plane.connection()) as client:
                        await membership.leave(instance=karmada, member=client, name=name)
        reporter.doing(subject, "deleting processes and data")
        await self._supervisor.delete_group(plane.group)
        await self._supervisor.release_ports(record.uid)
        await asyncio.to_thread(shutil.rmtree, self._logs.logs / plane.group, ignore_errors=True)
        (plane.directory / _RECORD).unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, plane.directory, ignore_errors=True)
        reporter.done(subject, "removed")

    async def stop(self, name: str) -> None:
        await self._supervisor.stop((await self._plane(self._require(name))).group)

    async def start(self, name: str) -> None:
        plane = await self._plane(self._require(name))
        await self._supervisor.start(plane.group)
        await self._supervisor.wait_ready(plane.group, timeout=clusters.READY_TIMEOUT)

    async def connection(self, name: str) -> Connection:
        return (await self._plane(self._require(name))).connection()

    async def _is_stopped(self, plane: ControlPlane) -> bool:
        statuses = await self._supervisor.status()
        mine = [status for status in statuses if status.name.startswith(f"{plane.group}/")]
        return bool(mine) and all(status.state is State.STOPPED for status in mine)

    async def _plane(self, record: _Record) -> ControlPlane:
        return await clusters.control_plane(
            self._supervisor, self._planes, kind=PlaneKind.MEMBER, name=record.spec.name, uid=record.uid
        )

    def _records(self) -> Iterable[_Record]:
        for path in sorted(self._planes.glob(f"*/{_RECORD}")):
            yield msgspec.json.decode(path.read_bytes(), type=_Record)

    def _find(self, name: str) -> _Record | None:
        return next((record for record in self._records() if record.spec.name == name), None)

    def _require(self, name: str) -> _Record:
        record = self._find(name)
        if record is None:
            known = ", ".join(spec.name for spec in self.specs()) or "none"
            raise MemberError(f"there is no member {name!r}; members: {known}")
        return record


async def _create_nodes(client: Client, spec: MemberSpec) -> None:
    async with asyncio.TaskGroup() as group:
        for index, nodes in enumerate(spec.nodes):
            for number in range(nodes.count):
                node = _node(f"{spec.name}-{index}-{number}", spec, nodes)
                group.create_task(_create_if_missing(client, node))


async def _create_if_missing(client: Client, node: dict[str, Any]) -> None:
    try:
        await client.create(kinds.NODES, node)
    except AlreadyExists:
        return


def _node(name: str, spec: MemberSpec, group: NodeGroup) -> dict[str, Any]:
    resources = {"cpu": group.cpu, "memory": group.memory, "pods": "110", "ephemeral-storage": "100Gi"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": spec.region,
        "topology.kubernetes.io/zone": group.zone,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources},
    }
