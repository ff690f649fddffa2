"""A control plane whose specifications are computed without an engine or a process."""

from pathlib import Path

import pytest

from kairship.controlplane import ControlPlane, PlaneKind, karmada
from kairship.engine import Engine
from kairship.engine.cache import Cache
from kairship.engine.pins import Catalogue


class PaperEngine(Engine):
    """Returns the paths of binaries. Nothing is run."""

    def binary(self, name: str, version: str | None = None) -> Path:
        return Path("/engine") / (version or "current") / name


@pytest.fixture(scope="session")
def paper_engine() -> Engine:
    return PaperEngine(catalogue=Catalogue.load(), cache=Cache(Path("/engine")), folder=None)


@pytest.fixture
def paper_plane(tmp_path: Path) -> ControlPlane:
    names = (*karmada.PORTS, "karmada-scheduler-estimator-m1", "karmada-scheduler-estimator-m1-health")
    ports = {name: 20000 + number for number, name in enumerate(names)}
    uid = "0b3cd62b-4b3c-4f0c-8a33-3a3f0f6a0001"
    return ControlPlane(PlaneKind.INSTANCE, "paper", uid, tmp_path / uid, ports)
