"""Programs in Go that judge what is served, each a folder of `tests` with a module of its own.

    informer    client-go's informer of one kind
    clients     what people write with client-go and controller-runtime
    argocd      Argo CD's cluster cache

They are built once per version of their sources, into the cache of the engine, by `python -m support.go_programs`:
compiling client-go takes longer than a test may wait.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from kairship.engine.cache import Cache
from kairship.engine.pins import BUILD_FLAGS, Catalogue
from support.not_yet import NotYet
from support.waiting import eventually

PROGRAMS = ("informer", "clients", "argocd")
_TESTS = Path(__file__).parent.parent
_SOURCES = frozenset({".go", ".mod", ".sum"})
_BUILD_TIMEOUT = 900.0


def build(program: str) -> Path:
    cache, sources = Cache.default(), _TESTS / program
    read = sorted(path for path in sources.iterdir() if path.suffix in _SOURCES)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()[:16]
    binary = cache.root / "tests" / f"{program}-{digest}"
    if binary.exists():
        return binary  # without waiting for the lock of a process that builds another program
    binary.parent.mkdir(parents=True, exist_ok=True)
    with (binary.parent / f".{program}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            partial = binary.with_suffix(".partial")
            # With the flags and tags of the engine's build, Go's build cache has most packages already.
            tags = ",".join(Catalogue.load().find("kube-apiserver").pinned.module.tags)
            command = [_go(cache), "build", *BUILD_FLAGS, "-tags", tags, "-o", str(partial), "."]
            environment = {**os.environ, "CGO_ENABLED": "0"}
            subprocess.run(command, cwd=sources, env=environment, check=True, timeout=_BUILD_TIMEOUT)
            partial.rename(binary)
    return binary


def _go(cache: Cache) -> str:
    found = shutil.which("go") or next(map(str, cache.toolchain.glob("go-*/go/bin/go")), None)
    assert found is not None, "no Go: `kairship engine build` installs one"
    return found


class Program:
    """A running program. `events` has everything that it has printed so far, a JSON object per line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._printed = asyncio.Condition()
        self.events: list[dict[str, Any]] = []

    async def read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            async with self._printed:
                self.events.append(msgspec.json.decode(line))
                self._printed.notify_all()

    async def until(self, event: str, *, after: int = 0, timeout: float = 90.0) -> dict[str, Any]:
        """Waits for an event and returns it. The first `after` events do not count."""

        def found() -> dict[str, Any] | None:
            return next((each for each in self.events[after:] if each["event"] == event), None)

        async with asyncio.timeout(timeout), self._printed:
            await self._printed.wait_for(lambda: found() is not None)
        return found() or {}

    async def state(self) -> dict[str, Any]:
        """Returns the present content of its caches."""
        assert self.process.stdin is not None
        before = len(self.events)
        self.process.stdin.write(b"state\n")
        return await self.until("state", after=before)

    async def until_state(self, holds: Callable[[dict[str, Any]], bool], *, timeout: float = 90.0) -> None:
        async def condition() -> NotYet | bool:
            state = await self.state()
            return holds(state) or NotYet(state)

        await eventually(condition, "the caches of the program", timeout=timeout)


@asynccontextmanager
async def running(binary: Path, *arguments: str) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        str(binary),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=64 << 20,
    )
    program = Program(process)
    reading = asyncio.create_task(program.read())
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


if __name__ == "__main__":
    for each in PROGRAMS:
        build(each)
