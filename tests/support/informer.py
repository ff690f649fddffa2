"""client-go's informer as a process: what Kubernetes' own clients make of what they are served.

The program is in `tests/informer`; `support.go_programs` builds it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from kairship.kube import Connection, Resource
from support import go_programs


class Told(msgspec.Struct, frozen=True):
    """One line of the program."""

    event: str
    name: str = ""
    version: str = ""
    old: str = ""
    uid: str = ""
    state: dict[str, str] = {}


def build() -> Path:
    return go_programs.build("informer")


class Informer:
    """A running one. `told` is everything it has said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._news = asyncio.Condition()
        self.told: list[Told] = []

    async def read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            async with self._news:
                self.told.append(msgspec.json.decode(line, type=Told))
                self._news.notify_all()

    async def until(self, holds: Callable[[list[Told]], bool], *, timeout: float = 120.0) -> None:
        async with asyncio.timeout(timeout), self._news:
            await self._news.wait_for(lambda: holds(self.told))

    async def synced(self) -> None:
        await self.until(lambda told: any(one.event == "synced" for one in told))

    async def state(self) -> dict[str, str]:
        """Its cache: the version of every object."""
        assert self._process.stdin is not None
        asked = len(self.told)
        self._process.stdin.write(b"state\n")
        await self.until(lambda told: any(one.event == "state" for one in told[asked:]))
        return next(one.state for one in self.told[asked:] if one.event == "state")


@asynccontextmanager
async def informer(
    binary: Path, server: str | Connection, resource: Resource, folder: Path, *, namespace: str = ""
) -> AsyncIterator[Informer]:
    """At a server that asks nobody who they are, or with what it takes to be let in."""
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


def changes(told: list[Told]) -> list[Told]:
    """What was new to the informer. client-go tells of an unchanged object again whenever it has listed anew."""
    return [one for one in told if one.event in {"add", "update", "delete"} and one.version != one.old]


def assert_nothing_twice(told: list[Told]) -> None:
    """Every object's story is one: each version once, each update from the version told before."""
    known: dict[str, str] = {}
    for one in changes(told):
        match one.event:
            case "add":
                assert one.name not in known, one
            case "update":
                assert known[one.name] == one.old, one
                assert int(one.version) > int(one.old), one
            case "delete":
                assert known.pop(one.name), one
                continue
        known[one.name] = one.version
