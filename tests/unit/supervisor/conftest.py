"""A supervisor in the test's own event loop, called over its real socket, with real children."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.waiting import eventually

from kairship.supervisor import HttpProbe, NotRunning, ProcessSpec, SupervisorClient, SupervisorError
from kairship.supervisor.__main__ import supervise
from kairship.supervisor.paths import Layout
from kairship.supervisor.ports import PortAllocator

CHILD_SERVER = Path(__file__).with_name("child_server.py")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def client(data_dir: Path) -> AsyncIterator[SupervisorClient]:
    layout = Layout.of(data_dir)
    layout.create()
    running = asyncio.create_task(supervise(layout))
    client = SupervisorClient(data_dir)

    async def answers() -> bool:
        assert not running.done(), running
        try:
            await client.health()
        except SupervisorError:
            return False
        return True

    await eventually(answers, "the supervisor answering")
    yield client
    if not running.done():
        with suppress(NotRunning):  # it has closed its socket, and is about to end
            await client.shutdown()
    await running


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def server_spec(tmp_path: Path, journal: Path) -> Iterator[Callable[..., ProcessSpec]]:
    """Creates specifications of `child_server.py`, each with a port and a probe."""
    book = PortAllocator(tmp_path / "test-ports.json", seed=str(tmp_path))

    def make(name: str, *, flag: str = "", linger: float = 0, **changes: Any) -> ProcessSpec:
        port = book.allocate("test", [name])[name]
        spec = ProcessSpec(
            name=name,
            argv=(sys.executable, "-I", "-S", str(CHILD_SERVER), name, str(port), str(journal), flag, str(linger)),
            cwd=str(tmp_path),
            ports=(port,),
            probe=HttpProbe(url=f"http://127.0.0.1:{port}/readyz"),
        )
        return msgspec.structs.replace(spec, **changes)

    yield make
    book.close()


@pytest.fixture
def shell_spec(tmp_path: Path) -> Callable[..., ProcessSpec]:
    """Creates specifications of shell scripts, without a probe."""

    def make(name: str, script: str, **changes: Any) -> ProcessSpec:
        return msgspec.structs.replace(ProcessSpec(name=name, argv=("sh", "-c", script), cwd=str(tmp_path)), **changes)

    return make
