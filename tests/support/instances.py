"""Instances of one test module, which the `local` driver creates beside the shared plane and deletes at the end."""

import asyncio
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kairship.controlplane.karmada import KarmadaSettings
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.instances.drivers import DesiredInstance, LocalDriver, run_steps
from kairship.kube import Client, kinds

BASIC = frozenset(
    {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "karmada-aggregated-apiserver",
        "karmada-webhook",
        "karmada-controller-manager",
        "karmada-scheduler",
    }
)
"""The components of an instance without any option."""


class OwnInstance:
    """An instance with its driver, its processes, its files and its data."""

    def __init__(self, plane: EmbeddedPlane, engine: Engine, *, version: str | None = None) -> None:
        self.uid = str(uuid.uuid4())
        self.name = f"test-{self.uid[:8]}"
        self.group = f"instance-{self.name}"
        self.engine = engine
        self.home = plane.home
        self.supervisor = plane.supervisor
        self.driver = LocalDriver(plane.home.root, engine=engine, supervisor=plane.supervisor)
        self.version = version or self.driver.versions()[0]
        self.directory = plane.home.planes / self.uid

    def desired(self, **settings: Any) -> DesiredInstance:
        """Returns the desired instance with these settings; all other settings have their defaults."""
        wanted = KarmadaSettings(**{"version": self.version, **settings})
        return DesiredInstance(uid=self.uid, name=self.name, settings=wanted)

    async def converge(self, **settings: Any) -> None:
        await run_steps(await self.driver.converge(self.desired(**settings)))

    async def delete(self) -> None:
        await run_steps(await self.driver.delete(self.uid))

    async def client(self) -> Client:
        return Client(await self.driver.connection(self.uid))

    async def pids(self) -> dict[str, int | None]:
        """The process of each component."""
        statuses = await self.supervisor.status(self.group)
        return {status.name.partition("/")[2]: status.pid for status in statuses}

    async def restarted_by(self, **settings: Any) -> set[str]:
        """Converges to these settings. Returns the components whose process was replaced, removed or added."""
        before = await self.pids()
        await self.converge(**settings)
        after = await self.pids()
        return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}

    def traces(self) -> list[str]:
        """Returns everything that exists of the instance: files by path or content, and processes."""
        files = [str(path) for path in _all_below(self.home.root) if self._is_trace(path)]
        processes = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended meanwhile
                if (process / "cwd").readlink().is_relative_to(self.directory):
                    processes.append(f"process {process.name}")
        return files + processes

    def _is_trace(self, path: Path) -> bool:
        if self.uid in str(path) or self.group in path.name:
            return True
        try:
            return path.suffix == ".json" and path.is_file() and self.uid in path.read_text(errors="replace")
        except FileNotFoundError:
            return False  # another test has removed it meanwhile

    async def write(self, name: str) -> None:
        """Writes a ConfigMap, so that a test can recognise this state of the data."""
        async with await self.client() as client:
            await client.create(kinds.CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")

    async def marks(self) -> set[str]:
        async with await self.client() as client:
            page = await client.list(kinds.CONFIGMAPS, namespace="default")
        return {item["metadata"]["name"] for item in page.items} - {"kube-root-ca.crt"}


def _all_below(root: Path) -> Iterator[Path]:
    """As `rglob`, which fails when another test removes a folder of the shared plane meanwhile."""
    for folder, folders, files in os.walk(root):
        yield from (Path(folder, name) for name in (*folders, *files))


@contextmanager
def own_instance(plane: EmbeddedPlane, engine: Engine, *, version: str | None = None) -> Iterator[OwnInstance]:
    """Runs an instance without any option, for a fixture. Asserts at the end that nothing is left of it."""
    instance = OwnInstance(plane, engine, version=version)
    try:
        asyncio.run(instance.converge())
        yield instance
    finally:
        asyncio.run(instance.delete())
        assert instance.traces() == []
