"""The process of container management (kpanda) in the embedded plane."""

from collections.abc import Mapping, Sequence

from kairship.embedded import backends
from kairship.embedded.home import Home
from kairship.kpanda import rbac
from kairship.supervisor import ProcessSpec

BACKEND = "kpanda"
PORTS = backends.port_names(BACKEND)


def process(home: Home, ports: Mapping[str, int], *, name: str, after: Sequence[str]) -> ProcessSpec:
    flags = (f"--index={home.index}", backends.ALLOW_LOOPBACK)
    return backends.process(home, ports, BACKEND, rbac.ACCOUNT, name=name, after=after, flags=flags)
