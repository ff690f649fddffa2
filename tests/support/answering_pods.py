"""Configures kwok so that its pods run commands, have logs and forward ports, all of them on this machine.

Only for planes of tests: a command in such a pod is a command on the machine.
"""

from pathlib import Path

from kairship.embedded import EmbeddedPlane
from support.waiting import PATIENCE

PORT = 18999
"""The local port to which all forwarded ports lead."""
_MARK = "# pods that answer\n"


def log_file(plane: EmbeddedPlane) -> Path:
    return plane.home.root / "pods.log"


def write_log(plane: EmbeddedPlane, *lines: str) -> None:
    with log_file(plane).open("a") as file:
        file.writelines(f"2026-01-01T00:00:00.000000000Z stdout F {line}\n" for line in lines)


async def let_pods_answer(plane: EmbeddedPlane) -> None:
    """Configures the members that the plane itself has, and restarts their kwok if the configuration is new.

    Clusters of other tests are left alone: they are started and removed at any moment.
    """
    log_file(plane).touch()
    configurations = [record.parent / "config/kwok-stages.yaml" for record in plane.home.planes.glob("*/member.json")]
    changed = [path for path in configurations if _MARK not in path.read_text()]
    for path in changed:
        with path.open("a") as file:
            file.write(f"\n---\n{_MARK}{_configuration(log_file(plane))}")
    if changed:
        names = [f"member-{spec.name}/kwok" for spec in plane.members.specs()]
        await plane.supervisor.restart(*names)
        await plane.supervisor.wait_ready(*names, timeout=PATIENCE)


def _configuration(log: Path) -> str:
    return f"""
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: {{name: all}}
spec: {{execs: [{{local: {{}}}}]}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterAttach
metadata: {{name: all}}
spec: {{attaches: [{{logsFile: {log}}}]}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {{name: all}}
spec: {{logs: [{{logsFile: {log}, follow: true}}]}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {{name: all}}
spec: {{forwards: [{{target: {{address: 127.0.0.1, port: {PORT}}}}}]}}
"""
