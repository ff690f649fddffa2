"""Container management of the embedded plane: its process. Its members are on loopback, so that is allowed here."""

import sys
from collections.abc import Mapping, Sequence

from kairship.embedded import inside
from kairship.embedded.home import Home
from kairship.kpanda import rbac
from kairship.supervisor import HttpProbe, ProcessSpec

ROLE = "kpanda"
PORTS = (inside.port_name(ROLE), "kpanda-ops")


def process(home: Home, ports: Mapping[str, int], *, name: str, after: Sequence[str]) -> ProcessSpec:
    kubeconfig = home.roles / f"{rbac.ACCOUNT}.kubeconfig"
    pair = inside.ensure_certificate(home, ROLE)
    ops = ports["kpanda-ops"]
    return ProcessSpec(
        name=name,
        argv=(
            sys.executable,
            "-m",
            "kairship",
            "kpanda",
            f"--kubeconfig={kubeconfig}",
            f"--index={home.index}",
            "--allow-address=127.0.0.0/8",
            f"--port={ports[inside.port_name(ROLE)]}",
            f"--ops-port={ops}",
            f"--tls-cert={pair.cert}",
            f"--tls-key={pair.key}",
        ),
        cwd=str(home.roles),
        after=tuple(after),
        probe=HttpProbe(url=f"http://127.0.0.1:{ops}/readyz"),
        # Not the certificate: it notices by itself when that changes.
        files=(str(kubeconfig),),
        ports=tuple(ports[port] for port in PORTS),
        # Calls that run have their time to end.
        stop_timeout=20.0,
    )
