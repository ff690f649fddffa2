"""An informer of client-go as a process. It shows how Kubernetes' own clients read our lists and watches.

The program is in `tests/informer`; `support.go_programs` builds it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from kairship.kube import Connection, Resource
from support import go_programs


class InformerEvent(msgspec.Struct, frozen=True):
    """One line of the program's output."""

    event: str
    name: str = ""
    version: str = ""
    old: str = ""
    uid: str = ""
    state: dict[str, str] = {}


def build() -> Path:
    return go_programs.build("informer")


class Informer:
    """A running informer. `events` has everything that it has printed so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._printed = asyncio.Condition()
        self.events: list[InformerEvent] = []

    async def read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            async with self._printed:
                self.events.append(msgspec.json.decode(line, type=InformerEvent))
                self._printed.notify_all()

    async def until(self, holds: Callable[[list[InformerEvent]], bool], *, timeout: float = 120.0) -> None:
        async with asyncio.timeout(timeout), self._printed:
            await self._printed.wait_for(lambda: holds(self.events))

    async def synced(self) -> None:
        await self.until(lambda events: any(each.event == "synced" for each in events))

    async def state(self) -> dict[str, str]:
        """Returns the cache of the informer: the version of every object."""
        assert self._process.stdin is not None
        before = len(self.events)
        self._process.stdin.write(b"state\n")
        await self.until(lambda events: any(each.event == "state" for each in events[before:]))
        return next(each.state for each in self.events[before:] if each.event == "state")


@asynccontextmanager
async def informer(
    binary: Path, server: str | Connection, resource: Resource, folder: Path, *, namespace: str = ""
) -> AsyncIterator[Informer]:
    """Runs an informer. `server` is the URL of a server without authentication, or a connection with credentials."""
    connection = Connection(server=server) if isinstance(server, str) else server
    kubeconfig = folder / "informer.kubeconfig"
    kubeconfig.write_bytes(connection.to_kubeconfig(name="x"))
    process = await asyncio.create_subprocess_exec(
        str(binary),
        *("-kubeconfig", str(kubeconfig), "-group", resource.group, "-version", resource.version),
        *("-plural", resource.plural, "-namespace", namespace),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=64 * 1024 * 1024,
    )
    running = Informer(process)
    reading = asyncio.create_task(running.read())
    try:
        yield running
    finally:
        process.kill()
        await process.wait()
        await reading


def changes(events: list[InformerEvent]) -> list[InformerEvent]:
    """Returns the events with a new version. client-go reports unchanged objects again after every new list."""
    return [each for each in events if each.event in {"add", "update", "delete"} and each.version != each.old]


def assert_nothing_twice(events: list[InformerEvent]) -> None:
    """Asserts that each version of an object comes once, and that each update begins at the version before it."""
    known: dict[str, str] = {}
    for each in changes(events):
        match each.event:
            case "add":
                assert each.name not in known, each
            case "update":
                assert known[each.name] == each.old, each
                assert int(each.version) > int(each.old), each
            case "delete":
                assert known.pop(each.name), each
                continue
        known[each.name] = each.version
