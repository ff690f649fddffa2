"""One embedded plane for a whole test run, however many workers it has.

The first worker that needs it brings it up, the others wait for that; the process that started the run takes it down.
Tests may create what they like in it under names of their own, and must not break what others use: whoever kills
processes makes instances or planes of their own.
"""

import asyncio
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.embedded import EmbeddedPlane, Home, demo
from kairship.engine import Engine
from kairship.kpanda import rbac
from kairship.kube import Client, Connection
from kairship.resources import NAMESPACE
from support import reaper
from support.reaper import LOCATION

# A kube-apiserver takes seven inotify instances for its certificates, and a run has a dozen of them; many systems
# allow 128 per user.
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_NEEDED = 512
MEMBERS = demo.MEMBERS[:2]
QUIET = "quiet"

_reaper: subprocess.Popen[bytes] | None = None


class Silent:
    """A reporter for tests."""

    def doing(self, subject: str, activity: str) -> None:
        """Nobody watches."""

    def done(self, subject: str, outcome: str) -> None:
        """Nobody watches."""


def prepare() -> None:
    """Called by the process that starts the run: decides where the plane will be, which its workers inherit."""
    if int(INOTIFY_LIMIT.read_text()) < INOTIFY_NEEDED:
        try:
            INOTIFY_LIMIT.write_text(str(INOTIFY_NEEDED))
        except PermissionError:
            pytest.exit(
                f"the tests need more inotify instances: sysctl fs.inotify.max_user_instances={INOTIFY_NEEDED}", 2
            )
    os.environ[LOCATION] = tempfile.mkdtemp(prefix="kairship-tests-")
    global _reaper
    _reaper = reaper.start(_root())


def discard() -> None:
    """Called by the process that started the run, at its end. Returns when nothing of the run is left."""
    assert _reaper is not None
    assert _reaper.stdin is not None
    _reaper.stdin.close()
    _reaper.wait()
    del os.environ[LOCATION]


def bring_up(engine: Engine) -> EmbeddedPlane:
    plane = EmbeddedPlane(Home(_root() / "plane"), engine)

    async def start() -> None:
        await plane.up(Silent(), MEMBERS)
        async with Client(await plane.global_connection()) as client:
            for manifest in _leave_clusters_of_tests_alone():
                await client.apply_object(manifest, field_manager="kairship-tests")

    _once("plane-is-up", start)
    return plane


def _leave_clusters_of_tests_alone() -> list[dict[str, Any]]:
    """Clusters with the label `own` have the status that a test gives them: container management cannot write it."""
    name = {"name": "kairship-tests-own-clusters"}
    rules = [
        {
            "apiGroups": ["cluster.kpanda.io"],
            "apiVersions": ["*"],
            "resources": ["clusters/status"],
            "operations": ["UPDATE"],
        }
    ]
    refusal = {
        "expression": "!has(object.metadata.labels) || !('own' in object.metadata.labels) "
        f"|| request.userInfo.username != 'system:serviceaccount:{NAMESPACE}:{rbac.ACCOUNT}'",
        "message": "the status of this cluster is a test's own",
    }
    api = "admissionregistration.k8s.io/v1"
    return [
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": name,
            "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [refusal]},
        },
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": name,
            "spec": {"policyName": name["name"], "validationActions": ["Deny"]},
        },
    ]


def bring_up_quiet_cluster(plane: EmbeddedPlane, engine: Engine) -> Connection:
    """A bare API server beside the plane in which nothing acts by itself, neither Kubernetes' controllers nor ours."""
    names = kubernetes.MEMBER_PORTS
    ports = asyncio.run(plane.supervisor.allocate_ports(QUIET, names))
    quiet = ControlPlane(PlaneKind.MEMBER, QUIET, QUIET, plane.home.planes / QUIET, ports)

    async def start() -> None:
        kubernetes.ensure_certificates(quiet)
        await plane.supervisor.put(kubernetes.etcd(quiet, engine), kubernetes.kube_apiserver(quiet, engine))
        await plane.supervisor.wait_ready(quiet.group, timeout=120.0)

    _once("quiet-cluster-is-up", start)
    return quiet.connection()


def _root() -> Path:
    return Path(os.environ[LOCATION])


def _once(what: str, bring_about: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """In the first worker that comes here; the others wait for it."""
    with (_root() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (_root() / what).exists():
            asyncio.run(bring_about())
            (_root() / what).touch()
