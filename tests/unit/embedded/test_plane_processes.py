"""The specifications of the plane's own processes."""

from pathlib import Path
from typing import Any, cast

import msgspec

from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.embedded import Home, plane_processes
from kairship.engine import Engine
from kairship.engine.cache import Cache
from kairship.engine.pins import Catalogue


class Ports:
    """A supervisor that allocates ports."""

    async def allocate_ports(self, group: str, names: tuple[str, ...]) -> dict[str, int]:
        return {name: 20000 + number for number, name in enumerate(names)}


async def test_the_processes_agree_which_namespaces_the_operator_has_reserved(tmp_path: Path) -> None:
    home = Home(tmp_path / "plane")
    record = home.open()
    home.write(msgspec.structs.replace(record, reserved_namespaces=("billing", "vault")))
    ports = {name: 21000 + number for number, name in enumerate(kubernetes.KUBERNETES_PORTS)}
    plane = ControlPlane(PlaneKind.GLOBAL, "global", record.global_uid, tmp_path / "global", ports)
    kubernetes.ensure_certificates(plane)
    engine = Engine(catalogue=Catalogue.load(), cache=Cache(tmp_path / "engine"), folder=None)
    found = await plane_processes.processes(cast("Any", Ports()), plane, home, engine)
    reserved = {
        spec.name: [flag for flag in spec.argv if flag.startswith("--reserve-namespace")]
        for spec in found
        if spec.name in {plane_processes.APISERVER, plane_processes.CONTROLLER_MANAGER}
    }
    flags = ["--reserve-namespace=billing", "--reserve-namespace=vault"]
    assert reserved == {plane_processes.APISERVER: flags, plane_processes.CONTROLLER_MANAGER: flags}
