"""Runs a Kubernetes cluster of the embedded plane: the global cluster or a member.

A cluster is a directory, a set of ports and a group of processes. Its kind determines which processes it has.
"""

import asyncio
from pathlib import Path

from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.engine import Engine
from kairship.supervisor import ProcessSpec, SupervisorClient

READY_TIMEOUT = 120.0


async def control_plane(
    supervisor: SupervisorClient, planes: Path, *, kind: PlaneKind, name: str, uid: str
) -> ControlPlane:
    ports = kubernetes.MEMBER_PORTS if kind is PlaneKind.MEMBER else kubernetes.KUBERNETES_PORTS
    return ControlPlane(
        kind=kind, name=name, uid=uid, directory=planes / uid, ports=await supervisor.allocate_ports(uid, ports)
    )


async def run(supervisor: SupervisorClient, engine: Engine, plane: ControlPlane) -> None:
    """Start the cluster, or update its files and processes, and wait until all its processes are ready."""
    await asyncio.to_thread(_write_files, plane, engine)
    await supervisor.put(*_processes(plane, engine))
    await supervisor.wait_ready(plane.group, timeout=READY_TIMEOUT)


def _write_files(plane: ControlPlane, engine: Engine) -> None:
    kubernetes.ensure_certificates(plane)
    if plane.kind is PlaneKind.MEMBER:
        kubernetes.write_kwok_stages(plane, engine)


def _processes(plane: ControlPlane, engine: Engine) -> list[ProcessSpec]:
    specs = [
        kubernetes.etcd(plane, engine),
        kubernetes.kube_apiserver(plane, engine),
        kubernetes.kube_controller_manager(plane, engine),
    ]
    if plane.kind is PlaneKind.MEMBER:
        specs += [kubernetes.kube_scheduler(plane, engine), kubernetes.kwok(plane, engine)]
    return specs
