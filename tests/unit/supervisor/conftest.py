"""A supervisor in the test's own event loop, talked to over its real socket, and real children for it."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kairship.supervisor import HttpProbe, ProcessSpec, SupervisorClient, SupervisorError
from kairship.supervisor.__main__ import supervise
from kairship.supervisor.layout import Layout
from kairship.supervisor.ports import PortBook

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
    while True:
        try:
            await client.health()
            break
        except SupervisorError:
            assert not running.done(), running
            await asyncio.sleep(0.01)
    yield client
    if not running.done():
        await client.shutdown()
    await running


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def server_spec(tmp_path: Path, journal: Path) -> Callable[..., ProcessSpec]:
    """Makes specifications of `child_server.py`, each with a port and a probe."""
    book = PortBook(tmp_path / "test-ports.json", seed=str(tmp_path))

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

    return make


@pytest.fixture
def shell_spec(tmp_path: Path) -> Callable[..., ProcessSpec]:
    """Makes specifications of shell scripts, without a probe."""

    def make(name: str, script: str, **changes: Any) -> ProcessSpec:
        return msgspec.structs.replace(ProcessSpec(name=name, argv=("sh", "-c", script), cwd=str(tmp_path)), **changes)

    return make


@pytest.fixture
def eventually() -> Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]:
    """Waits until a condition holds; fails after ten seconds."""

    async def wait(condition: Callable[[], Awaitable[bool]]) -> None:
        deadline = time.monotonic() + 10
        while not await condition():
            assert time.monotonic() < deadline, "it did not come true within ten seconds"
            await asyncio.sleep(0.02)

    return wait
