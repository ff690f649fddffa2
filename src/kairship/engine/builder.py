"""Builds the engine: downloads the sources, copies the manifests, and compiles one binary after another.

One asyncio task compiles one binary at a time, because go itself uses every core. Another task downloads the sources of
the next module meanwhile, which takes time but hardly any CPU. The lock of the cache is held throughout, so a second
build waits and then finds everything built. A build that was interrupted in any way continues where it stopped:
finished files have their final names, everything else is in a workspace that the next build clears, and go's own caches
keep the compiled packages.
"""

import asyncio
import os
import re
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from kairship.engine import lock, toolchain
from kairship.engine.cache import Cache
from kairship.engine.catalogue import Group, Tree
from kairship.engine.command import Outcome, ignore_line, run
from kairship.engine.errors import CompileError, DiskFullError, DownloadError, EngineError, NetworkError
from kairship.engine.pins import BUILD_FLAGS, Binary, Catalogue, PinnedModule
from kairship.engine.progress import Building, Built, Downloading, Progress, Waiting, silent
from kairship.engine.space import disk_full_at, require_room

_QUERY_TIMEOUT = 60.0
_DOWNLOAD_TIMEOUT = 3600.0
_COMPILE_TIMEOUT = 3600.0

# The average size; the largest binary, kube-apiserver, has 104 MB.
_BINARY_BYTES = 75_000_000

_FETCHED = re.compile(r"^# get \w+://[^/]+/(?P<path>\S+)/@v/(?P<version>\S+)\.zip: 200 ")
_NO_ROOM = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_NO_NETWORK = re.compile(
    r"dial (tcp|udp)|lookup \S+ |i/o timeout|connection (refused|reset)|no such host|no route to host"
    r"|network is unreachable|TLS handshake timeout|proxyconnect|context deadline exceeded|unexpected EOF"
    r"|50[234] (Bad Gateway|Service Unavailable|Gateway Time-?out)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Job:
    """The binaries and manifests of one module that are missing."""

    module: PinnedModule
    binaries: list[Binary]
    trees: list[Tree]


@dataclass
class _Tally:
    """The progress of a build."""

    total: int
    started: float
    done: int = 0


async def build(
    groups: Collection[Group] = (Group.PLANE,),
    *,
    catalogue: Catalogue | None = None,
    cache: Cache | None = None,
    environ: Mapping[str, str] = os.environ,
    progress: Progress = silent,
) -> None:
    """Build the binaries and manifests of these groups that are not in the cache yet."""
    catalogue = catalogue or Catalogue.load()
    cache = cache or Cache.default(environ)
    if not _missing(groups, catalogue, cache):
        return
    with disk_full_at(cache.root):
        async with lock.held_eventually(cache.lock, on_wait=lambda pid: progress(Waiting(pid))):
            jobs = _missing(groups, catalogue, cache)
            if not jobs:
                return
            with cache.workspace() as work:
                go = await toolchain.ensure(
                    minimum=max((job.module.gomod.go for job in jobs), key=toolchain.number),
                    requirements=catalogue.requirements,
                    cache=cache,
                    work=work,
                    environ=environ,
                    progress=progress,
                )
                await _Builder(go=go, cache=cache, work=work, environ=environ, progress=progress).run(jobs)


def _missing(groups: Collection[Group], catalogue: Catalogue, cache: Cache) -> list[_Job]:
    jobs = []
    for module in catalogue.modules:
        wanted = [binary for binary in module.binaries if binary.group in groups]
        trees = module.trees if wanted or Group.MANIFESTS in groups else ()
        job = _Job(
            module=module,
            binaries=[binary for binary in wanted if not cache.binary(binary).exists()],
            trees=[tree for tree in trees if not cache.tree(module, tree).exists()],
        )
        if job.binaries or job.trees:
            jobs.append(job)
    return jobs


class _Builder:
    """Runs one build."""

    def __init__(
        self, *, go: toolchain.Go, cache: Cache, work: Path, environ: Mapping[str, str], progress: Progress
    ) -> None:
        self._go = go
        self._cache = cache
        self._work = work
        self._progress = progress
        self._awaited: _Job | None = None
        self._environ = {
            **environ,
            "CGO_ENABLED": "0",
            # It must not be empty, because then the value of `go env -w` would be used.
            "GOFLAGS": "-mod=readonly",
            "GOWORK": "off",
            "GOTOOLCHAIN": "local",
            # go's temporary files are as large as its output, and /tmp is often small. A later build clears `work`.
            "GOTMPDIR": str(work),
        }
        if go.root:
            self._environ["GOROOT"] = str(go.root)

    async def run(self, jobs: list[_Job]) -> None:
        await self._require_room(jobs)
        tally = _Tally(total=sum(len(job.binaries) for job in jobs), started=time.monotonic())
        async with aclosing(self._with_sources(jobs)) as ready:
            async for job in ready:
                for tree in job.trees:
                    await self._copy(job.module, tree)
                for binary in job.binaries:
                    await self._build(binary, tally)

    async def _build(self, binary: Binary, tally: _Tally) -> None:
        begun = time.monotonic()
        self._progress(
            Building(
                binary=binary.name,
                version=binary.version,
                done=tally.done,
                left=tally.total - tally.done,
                elapsed=begun - tally.started,
            )
        )
        size = await self._compile(binary)
        tally.done += 1
        self._progress(
            Built(
                binary=binary.name,
                version=binary.version,
                size=size,
                seconds=time.monotonic() - begun,
                done=tally.done,
                left=tally.total - tally.done,
                elapsed=time.monotonic() - tally.started,
            )
        )

    async def _require_room(self, jobs: list[_Job]) -> None:
        """Raise `DiskFullError` if the build needs more disk space than there is. For a module that is partly built,
        sources and compiled packages are in go's caches already."""
        query = await self._run_go(["env", "GOMODCACHE", "GOCACHE"], timeout=_QUERY_TIMEOUT)
        sources, compiled = map(Path, query.stdout.splitlines())
        cold = [
            job.module
            for job in jobs
            if job.binaries and not any(self._cache.binary(binary).exists() for binary in job.module.binaries)
        ]
        binaries = sum(len(job.binaries) for job in jobs)
        require_room(
            [
                (sources, sum(module.module.sources_bytes for module in cold)),
                (compiled, sum(module.module.compiled_bytes for module in cold)),
                # Two more binaries, because the linker's output exists besides its copy.
                (self._cache.root, (binaries + 2) * _BINARY_BYTES if binaries else 0),
            ]
        )

    async def _with_sources(self, jobs: list[_Job]) -> AsyncGenerator[_Job]:
        """Yields each job when its sources have been downloaded, and downloads those of the next job meanwhile."""
        fetching = asyncio.create_task(self._download(jobs[0]))
        try:
            for number, job in enumerate(jobs, start=1):
                self._awaited = job
                if not fetching.done():
                    self._progress(Downloading(module=job.module.name))
                await fetching
                if number < len(jobs):
                    fetching = asyncio.create_task(self._download(jobs[number]))
                yield job
        finally:
            fetching.cancel()
            # Its error is ignored, because the build has already ended for another reason.
            await asyncio.gather(fetching, return_exceptions=True)

    async def _download(self, job: _Job) -> None:
        """Download all sources of a module; if only manifests are missing, only the Go modules that contain them."""
        fetched = 0

        def report(line: str) -> None:
            nonlocal fetched
            if match := _FETCHED.match(line):
                fetched += 1
                latest = f"{match['path']} {match['version']}"
                if self._awaited is job:  # otherwise a binary is being compiled, and that is what is reported
                    self._progress(Downloading(module=job.module.name, fetched=fetched, latest=latest))

        only = [] if job.binaries else sorted({tree.source for tree in job.trees})
        outcome = await self._run_go(
            ["mod", "download", "-x", *only], module=job.module, timeout=_DOWNLOAD_TIMEOUT, on_error_line=report
        )
        if outcome.status != 0:
            raise self._download_error(job.module, outcome)

    def _download_error(self, module: PinnedModule, outcome: Outcome) -> EngineError:
        # -x traces every request; the error is in the other lines.
        lines = [line for line in outcome.errors.splitlines() if not line.startswith("# get ")]
        tail = "\n".join(lines) or outcome.errors
        if _NO_ROOM.search(tail):
            return DiskFullError(path=self._cache.root)
        kind = NetworkError if _NO_NETWORK.search(tail) else DownloadError
        return kind(module=module.name, tail=tail)

    async def _copy(self, module: PinnedModule, tree: Tree) -> None:
        query = await self._run_go(["list", "-m", "-f", "{{.Dir}}", tree.source], module=module, timeout=_QUERY_TIMEOUT)
        if query.status != 0:
            raise DownloadError(module=module.name, tail=query.errors)
        copy = self._work / tree.name
        source = Path(query.stdout.strip()) / tree.path
        for file in sorted(source.rglob("*.yaml")):
            relative = file.relative_to(source)
            if "testdata" not in relative.parts:
                (copy / relative).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy / relative)
        _install(copy, self._cache.tree(module, tree))

    async def _compile(self, binary: Binary) -> int:
        """Build one binary and return its size."""
        output = self._work / binary.name
        tags = ",".join(binary.pinned.module.tags)
        outcome = await self._run_go(
            ["build", *BUILD_FLAGS, "-tags", tags, "-ldflags", binary.ldflags, "-o", output, binary.component.package],
            module=binary.pinned,
            timeout=_COMPILE_TIMEOUT,
        )
        if outcome.status != 0:
            if _NO_ROOM.search(outcome.errors):
                raise DiskFullError(path=self._cache.root)
            raise CompileError(binary=binary.name, tail=outcome.errors)
        size = output.stat().st_size
        _install(output, self._cache.binary(binary))
        return size

    async def _run_go(
        self,
        arguments: Sequence[str | Path],
        *,
        timeout: float,
        module: PinnedModule | None = None,
        on_error_line: Callable[[str], None] = ignore_line,
    ) -> Outcome:
        environ = dict(self._environ)
        if module:
            environ |= {"GOOS": module.platform.os, "GOARCH": module.platform.arch}
        return await run(
            [self._go.path, *arguments],
            cwd=module.directory if module else self._work,
            env=environ,
            timeout=timeout,
            on_error_line=on_error_line,
        )


def _install(finished: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    finished.rename(target)
