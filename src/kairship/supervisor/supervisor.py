"""The set of supervised processes of one data directory, with the operations of the control API.

It runs on the event loop of the main thread. A change of the set is applied at once, without an await in between, and
then written to disk; the children's tasks follow it. Blocking work (disk, /proc) runs in a thread, one call at a time
per concern, so changes take effect in the order in which they were admitted.
"""

import asyncio
import graphlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import structlog
from msgspec.structs import replace

from kairship.process.change_notifier import ChangeNotifier
from kairship.supervisor import usage
from kairship.supervisor.child import Child
from kairship.supervisor.errors import InvalidSpec, ShuttingDown, UnknownProcess
from kairship.supervisor.fence import Fence
from kairship.supervisor.logfile import LogFile
from kairship.supervisor.paths import Layout
from kairship.supervisor.ports import PortAllocator
from kairship.supervisor.running import RunningProcesses
from kairship.supervisor.spec import MIB, ProcessSpec, ProcessStatus, State, Term, Unready, selects
from kairship.supervisor.store import SpecStore, StoredSpec

log = structlog.get_logger()

HOUSEKEEPING = 3.0
OWN_LOG_LIMIT = 16 * MIB


class Supervisor:
    def __init__(self, layout: Layout) -> None:
        self.closing = asyncio.Event()
        self._layout = layout
        self._tasks: asyncio.TaskGroup
        self._children: dict[str, Child] = {}
        self._remembered: dict[str, StoredSpec] = {}
        self._changes = ChangeNotifier()
        self._meter = usage.CpuMeter()
        self._running_processes = RunningProcesses(layout.running)
        self._store, self._storing = SpecStore(layout.processes), asyncio.Lock()
        self._fence, self._admitting = Fence(layout.terms), asyncio.Lock()
        self._ports, self._allocating = PortAllocator(layout.ports, seed=str(layout.data_dir)), asyncio.Lock()

    async def open(self, tasks: asyncio.TaskGroup) -> None:
        """Start every stored process, after killing the processes that an earlier supervisor left."""
        self._tasks = tasks
        await asyncio.to_thread(self._running_processes.sweep)
        self._remembered = await asyncio.to_thread(self._store.load)
        for remembered in self._remembered.values():
            self._adopt(remembered)

    async def drain(self) -> None:
        """Stop all processes in order. Their specifications stay stored."""
        self.closing.set()
        for child in self._children.values():
            child.retire()
        await self._changes.wait_for(lambda: not self._children)
        self._ports.close()

    async def housekeep(self) -> None:
        """Rotate logs and sample CPU usage periodically, until the task is cancelled."""
        own_log = LogFile(self._layout.own_log)
        while True:
            await asyncio.sleep(HOUSEKEEPING)
            await asyncio.to_thread(self._meter.sample, self._pids())
            logs = [(child.log_file, child.spec.log_limit_bytes) for child in self._children.values()]
            for file, limit in [*logs, (own_log, OWN_LOG_LIMIT)]:
                if file.size() > limit:
                    try:
                        await asyncio.to_thread(file.rotate)
                    except OSError as error:
                        log.warning("the older part of a log is lost", file=str(file.path), problem=str(error))

    # Changes. The caller awaits `admit` first and then one of these, which acts before its first await.

    async def admit(self, term: Term | None) -> None:
        """Admit a change, or raise an error if its term is stale or the supervisor is shutting down."""
        if term is not None:
            async with self._admitting:
                await asyncio.to_thread(self._fence.admit, term)
        if self.closing.is_set():  # checked last, so that nothing is added to a set that is being stopped
            raise ShuttingDown("the supervisor is shutting down")

    async def put(self, specs: Sequence[ProcessSpec]) -> list[str]:
        self._validate(specs)
        changed = []
        for spec in specs:
            child = self._children.get(spec.name)
            if child is None:
                self._adopt(StoredSpec(spec=spec))
            elif not child.assign(spec):
                continue
            self._remember(self._children[spec.name])
            changed.append(spec.name)
        if changed:
            log.info("new or changed", processes=changed)
        await self._write()
        return changed

    async def delete(self, selectors: Sequence[str]) -> None:
        chosen = [child for child in self._children.values() if _matches(child.spec.name, selectors)]
        for child in chosen:
            child.retire()
            self._remembered.pop(child.spec.name, None)
        await self._write()
        # A process that was put again meanwhile is no longer retired, and must not be waited for.
        await self._changes.wait_for(lambda: not any(child.retired and self._knows(child) for child in chosen))

    async def start(self, selectors: Sequence[str]) -> None:
        for child in self._select(selectors):
            child.start()
            self._remember(child)
        await self._write()

    async def stop(self, selectors: Sequence[str]) -> None:
        await self._take_down(self._select(selectors), Child.stop)

    async def restart(self, selectors: Sequence[str]) -> None:
        await self._take_down(self._select(selectors), Child.restart)

    async def _take_down(self, chosen: Sequence[Child], change: Callable[[Child], None]) -> None:
        """Change the children, and return when the processes that ran before are gone."""
        runs = [(child, child.process) for child in chosen if child.process]
        for child in chosen:
            change(child)
            self._remember(child)
        await self._write()
        await self._changes.wait_for(lambda: all(child.process is not process for child, process in runs))

    async def allocate_ports(self, owner: str, names: Sequence[str]) -> dict[str, int]:
        async with self._allocating:
            return await asyncio.to_thread(self._ports.allocate, owner, names)

    async def release_ports(self, owner: str) -> None:
        async with self._allocating:
            await asyncio.to_thread(self._ports.release, owner)

    # Reads.

    async def status(self, selectors: Sequence[str], *, measured: bool) -> list[ProcessStatus]:
        """The status of the selected processes, or of all if nothing is selected. Measuring CPU and memory is slow."""
        chosen = [child for name, child in sorted(self._children.items()) if not selectors or _matches(name, selectors)]
        pids = [child.process.pid for child in chosen if child.process] if measured else []
        memory = await asyncio.to_thread(usage.memory_bytes, pids) if pids else {}
        seconds = await asyncio.to_thread(usage.cpu_seconds, pids) if pids else {}

        def describe(child: Child) -> ProcessStatus:
            status = ProcessStatus(
                name=child.spec.name,
                state=child.state,
                since=child.since,
                reason=child.reason,
                restarts=child.restarts,
                last_exit=child.last_exit,
                log=str(child.log_file.path),
                ports=child.spec.ports,
            )
            if child.process is None:
                return status
            pid = child.process.pid
            return replace(
                status,
                pid=pid,
                memory_bytes=memory.get(pid),
                cpu_seconds=seconds.get(pid),
                cpu_percent=self._meter.percent.get(pid) if measured else None,
            )

        return [describe(child) for child in chosen]

    async def wait(self, selectors: Sequence[str], *, timeout: float) -> list[Unready]:
        """Wait until all are ready, until waiting is pointless, or until the deadline. Returns those not ready."""
        names = [child.spec.name for child in self._select(selectors)]

        def settled() -> bool:
            return not any(map(self._unready, names)) or any(map(self._hopeless, names))

        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._changes.wait_for(settled)
        return [unready for name in names if (unready := self._unready(name))]

    async def logs(self, name: str, *, lines: int) -> list[str]:
        if name not in self._children:
            raise UnknownProcess(f"no process is named {name}")
        return await asyncio.to_thread(self._children[name].log_file.tail, lines)

    # The implementation of `child.Dependencies`.

    def blocked_by(self, child: Child) -> str:
        reasons = [unready for name in child.spec.after if (unready := self._unready(name))]
        return f"waits for {', '.join(map(_brief, reasons))}" if reasons else ""

    def has_running_dependents(self, child: Child) -> bool:
        return any(other.leaving and child.spec.name in other.spec.after for other in self._children.values())

    def _adopt(self, remembered: StoredSpec) -> None:
        name = remembered.spec.name
        self._children[name] = Child(
            remembered.spec,
            stopped=remembered.stopped,
            log_file=LogFile(self._layout.log(name)),
            running_processes=self._running_processes,
            changes=self._changes,
            dependencies=self,
        )
        self._tasks.create_task(self._run(self._children[name]), name=name)

    async def _run(self, child: Child) -> None:
        await child.run()
        del self._children[child.spec.name]
        self._changes.notify()

    def _remember(self, child: Child) -> None:
        self._remembered[child.spec.name] = StoredSpec(spec=child.spec, stopped=child.stopped)

    async def _write(self) -> None:
        async with self._storing:
            await asyncio.to_thread(self._store.sync, dict(self._remembered))

    def _validate(self, specs: Sequence[ProcessSpec]) -> None:
        for spec in specs:
            if problem := spec.problem():
                raise InvalidSpec(problem)
        after = {name: child.spec.after for name, child in self._children.items()} | {s.name: s.after for s in specs}
        try:
            graphlib.TopologicalSorter(after).prepare()
        except graphlib.CycleError as error:
            raise InvalidSpec(f"these would wait for each other: {' → '.join(error.args[1])}") from error

    def _select(self, selectors: Sequence[str]) -> list[Child]:
        staying = {name: child for name, child in sorted(self._children.items()) if not child.retired}
        for selector in selectors:
            if not any(selects(selector, name) for name in staying):
                raise UnknownProcess(f"no process is named {selector}, and no group")
        return [child for name, child in staying.items() if _matches(name, selectors)]

    def _knows(self, child: Child) -> bool:
        return self._children.get(child.spec.name) is child

    def _pids(self) -> list[int]:
        return [child.process.pid for child in self._children.values() if child.process]

    def _unready(self, name: str) -> Unready | None:
        log_path = str(self._layout.log(name))
        child = self._children.get(name)
        if child is None:
            return Unready(name=name, state=State.STOPPED, reason="not known", log=log_path)
        if child.ready:
            return None
        return Unready(name=name, state=child.state, reason=child.reason, log=log_path)

    def _hopeless(self, name: str) -> bool:
        """Whether the process, or one that it waits for, will not become ready by waiting."""
        child = self._children.get(name)
        if child is None or child.ready:
            return child is None
        return child.hopeless or (child.state is State.WAITING and any(map(self._known_hopeless, child.spec.after)))

    def _known_hopeless(self, name: str) -> bool:
        return name in self._children and self._hopeless(name)


def _matches(name: str, selectors: Iterable[str]) -> bool:
    return any(selects(selector, name) for selector in selectors)


def _brief(unready: Unready) -> str:
    return f"{unready.name} ({unready.state}{f': {unready.reason}' if unready.reason else ''})"
