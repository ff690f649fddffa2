"""Container management of the embedded plane: its process."""

from collections.abc import Mapping, Sequence

from kairship.embedded import inside
from kairship.embedded.home import Home
from kairship.kpanda import rbac
from kairship.supervisor import ProcessSpec

ROLE = "kpanda"
PORTS = inside.ports_of(ROLE)


def process(home: Home, ports: Mapping[str, int], *, name: str, after: Sequence[str]) -> ProcessSpec:
    flags = (f"--index={home.index}", inside.ON_THIS_MACHINE)
    return inside.process(home, ports, ROLE, rbac.ACCOUNT, name=name, after=after, flags=flags)
