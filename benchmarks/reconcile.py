"""Measures the idle cost of the controller-manager, and how soon and how cheaply it acts on a change.

    python benchmarks/reconcile.py            prints and writes results/reconcile.json
    python benchmarks/reconcile.py --check    does the same, and fails unless cost follows changes and not objects

The plane runs in a temporary directory: a real global cluster, and `kairship controller-manager`, which the supervisor
runs as `kairship up` does, with its own service account. Three things are measured in one run:

Idle, with 10, 100 and 1,000 objects. Half of them are Memberships and half are Secrets of the size of a kubeconfig: the
controllers watch both and have nothing to do for them. (Instances are the third part: they are probed all the time, so
they are expected to cost.) CPU is the process's own and memory its proportional set size, as the supervisor reports
them. Requests are those in the API server's audit log by the service account, including those for the lease. The
comparison, on the same objects, is a simple poller that lists everything every few seconds.

Changes, one after the other, with the same numbers of objects. A change is a new label on a Membership. It triggers the
lifecycle controller for the instance that the Membership names, and the controller begins by reading that instance. The
measurement begins when the PATCH is sent and ends when the API server receives this GET, by its audit log. The
instances do not exist, so the reconcile ends there, and the CPU per change is that of the runtime, from the event to
the reconcile. For comparison `kubectl get --watch` prints the same changes: the time of its line is that of a bare
watch.

Instances: one and two real Karmadas of the driver `local`, which run and are left alone. Status sync checks each of
their components every two seconds, so that a fault shows in seconds: this is the cost that does grow with objects.

The table has CPU in percent of one core. On a busy machine only the ratios are reliable.
"""

import argparse
import asyncio
import base64
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import report
from processes.measured_plane import PATIENCE, Latency, Plane, Request, running_plane

from kairship.controllers import rbac
from kairship.controllers.global_cluster import INSTANCE, MEMBERSHIP
from kairship.embedded import Home, plane_processes
from kairship.instances.drivers.polling import until
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import MetadataOnly
from kairship.resources import NAMESPACE, Instance
from kairship.resources.instance_status import InstanceState
from kairship.supervisor import ProcessSpec

SIZES = (10, 100, 1000)
INSTANCES = 2
IDLE_SECONDS = 15.0
POLL_EVERY = 5.0
WARM_UP, CHANGES = 20, 200
SECRET_BYTES = 4096

POLLER = "benchmark/poller"
POLLER_AGENT = "poller"

# The growth that `--check` tolerates from the smallest number of objects to the largest: a factor of two, and the noise
# of a short window. If the cost followed the objects, it would grow by a factor of a hundred.
TOLERATED_FACTOR = 2.0
TOLERATED_NOISE = {"idle CPU, %": 0.5, "idle requests per second": 0.2, "CPU per change, ms": 1.0}


@dataclass(frozen=True)
class Idle:
    cpu_percent: float
    memory_mib: float
    requests_per_second: float


@dataclass(frozen=True)
class Changes:
    reconcile: Latency
    kubectl_watch: Latency
    cpu_ms_per_change: float
    requests_per_change: float


def _poller(home: Home) -> ProcessSpec:
    kubeconfig = home.processes / f"{rbac.ACCOUNT}.kubeconfig"
    return ProcessSpec(
        name=POLLER,
        argv=(sys.executable, str(Path(__file__).resolve()), "--poll", str(kubeconfig)),
        cwd=str(home.processes),
        after=(plane_processes.CONTROLLER_MANAGER,),
    )


async def poll(kubeconfig: Path) -> None:
    """The poller that the controller-manager is compared with: it lists the same kinds again and again."""
    known: dict[str, str] = {}
    async with Client(Connection.from_kubeconfig(kubeconfig), user_agent=POLLER_AGENT) as client:
        while True:
            found: dict[str, str] = {}
            for resource, namespace in ((INSTANCE, None), (MEMBERSHIP, None), (kinds.SECRETS, NAMESPACE)):
                page = await client.typed(MetadataOnly).list(resource, namespace=namespace)
                found |= {item.metadata.uid: item.metadata.resource_version for item in page.items}
            known, changed = found, known.items() ^ found.items()
            print(f"{len(known)} objects, {len(changed)} differences")
            await asyncio.sleep(POLL_EVERY)


class Objects:
    """The Memberships and Secrets of the plane."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.memberships: list[str] = []

    async def grow_to(self, size: int) -> None:
        """Returns when the controllers have processed every new object."""
        begin = time.time()
        names = [f"bench-{number:04}" for number in range(len(self.memberships), size // 2)]
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(self._create(name))
        self.memberships += names
        await until(lambda: self._not_yet_seen(set(names), begin), what="a look at every membership", timeout=PATIENCE)

    async def _create(self, name: str) -> None:
        client = self._plane.client
        content = base64.b64encode(os.urandom(SECRET_BYTES)).decode()
        await client.create(
            kinds.SECRETS, {"metadata": {"name": name}, "data": {"content": content}}, namespace=NAMESPACE
        )
        await client.create(MEMBERSHIP, {"metadata": {"name": name}, "spec": {"instance": name}})

    async def _not_yet_seen(self, names: set[str], begin: float) -> str | None:
        seen = {request.object_ref.name for request in self._plane.audit.between(begin, time.time())}
        return f"{len(names - seen)} are missing" if names - seen else None


class Costs:
    """The CPU-seconds of processes of the supervisor."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    async def idle(self) -> tuple[Idle, Idle]:
        """The usage of the controller-manager and of the poller over the same seconds."""
        names = (plane_processes.CONTROLLER_MANAGER, POLLER)
        begin, before = time.time(), [await self._plane.cpu_seconds(name) for name in names]
        await asyncio.sleep(IDLE_SECONDS)
        after, end = [await self._plane.cpu_seconds(name) for name in names], time.time()
        requests = self._plane.audit.between(begin, end)
        polled = sum(request.user_agent == POLLER_AGENT for request in requests)
        managed, polling = [
            Idle(
                cpu_percent=round(100 * (used - used_before) / (end - begin), 2),
                memory_mib=round(await self._plane.memory_bytes(name) / 1024**2, 1),
                requests_per_second=round(count / (end - begin), 2),
            )
            for name, used, used_before, count in zip(
                names, after, before, (len(requests) - polled, polled), strict=True
            )
        ]
        return managed, polling


class KubectlWatch:
    """`kubectl get --watch`, and the times at which it printed each change."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._seen: dict[str, float] = {}
        self._news = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def running(cls, plane: Plane) -> AsyncIterator["KubectlWatch"]:
        process = await asyncio.create_subprocess_exec(
            plane.engine.binary("kubectl"),
            f"--kubeconfig={plane.cluster.kubeconfig('admin')}",
            f"--cache-dir={plane.home.root / 'kubectl'}",
            "get",
            "memberships",
            "--watch",
            '--output=jsonpath={.metadata.labels.change}{"\\n"}',
            stdout=asyncio.subprocess.PIPE,
        )
        watch = cls(process)
        reading = asyncio.create_task(watch._read())
        try:
            yield watch
        finally:
            process.kill()
            await process.wait()
            await reading

    async def seen(self, change: str) -> float:
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: change in self._seen)
        return self._seen[change]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            now = time.time()
            async with self._news:
                self._seen.setdefault(line.decode().strip(), now)
                self._news.notify_all()


async def measure_changes(plane: Plane, objects: Objects, costs: Costs, idle: Idle) -> Changes:
    """`idle` is the usage without changes."""
    sent: list[tuple[str, float]] = []
    watched: list[float] = []
    async with KubectlWatch.running(plane) as watch:
        for number in range(WARM_UP + CHANGES):
            if number == WARM_UP:
                begin, cpu_before = time.time(), await plane.cpu_seconds()
            name = objects.memberships[number % len(objects.memberships)]
            change, at = f"{len(objects.memberships)}-{number}", time.time()
            await plane.client.patch(MEMBERSHIP, name, {"metadata": {"labels": {"change": change}}})
            seen = await watch.seen(change)
            if number >= WARM_UP:
                sent.append((name, at))
                watched.append(seen - at)

        async def unanswered() -> str | None:
            missing = sum(at is None for at in _answers(sent, plane.audit.between(begin, time.time())))
            return f"{missing} changes are not reconciled" if missing else None

        await until(unanswered, what="a reconcile after every change", timeout=PATIENCE)
        cpu, end = await plane.cpu_seconds() - cpu_before, time.time()
    requests = plane.audit.between(begin, end)
    answers = _answers(sent, requests)
    reconciled = [answer - at for (_, at), answer in zip(sent, answers, strict=True) if answer is not None]
    caused = cpu - idle.cpu_percent / 100 * (end - begin)
    return Changes(
        reconcile=Latency.of(reconciled),
        kubectl_watch=Latency.of(watched),
        cpu_ms_per_change=round(1000 * caused / CHANGES, 2),
        requests_per_change=round(sum(_reads_instance(request) for request in requests) / CHANGES, 2),
    )


def _reads_instance(request: Request) -> bool:
    return request.verb == "get" and request.object_ref.resource == INSTANCE.plural


def _answers(sent: Iterable[tuple[str, float]], requests: Sequence[Request]) -> list[float | None]:
    """The first read of its instance after each change."""
    looks: dict[str, list[float]] = {}
    for request in filter(_reads_instance, requests):
        looks.setdefault(request.object_ref.name, []).append(request.at.timestamp())
    return [next((look for look in looks.get(name, ()) if look >= at), None) for name, at in sent]


async def add_instance(plane: Plane, name: str) -> None:
    await plane.client.create(INSTANCE, {"metadata": {"name": name}, "spec": {"driver": "local"}})

    async def not_yet() -> str | None:
        status = (await plane.client.typed(Instance).get(INSTANCE, name)).status
        runs = status.state is InstanceState.RUNNING and status.operation is None
        return None if runs else f"it is {status.state}"

    await until(not_yet, what=f"instance {name} running", timeout=PATIENCE)


async def measure() -> list[str]:
    """Prints and writes all results. Returns the promises that were not kept."""
    load = round(psutil.getloadavg()[0], 2)
    idle: dict[str, Idle] = {}
    polling: dict[str, Idle] = {}
    changes: dict[int, Changes] = {}
    async with running_plane(lambda home: [_poller(home)]) as plane:
        objects, costs = Objects(plane), Costs(plane)
        for size in SIZES:
            await objects.grow_to(size)
            idle[str(size)], polling[str(size)] = await costs.idle()
            changes[size] = await measure_changes(plane, objects, costs, idle[str(size)])
        for count in range(1, INSTANCES + 1):
            await add_instance(plane, f"karmada-{count}")
            label = f"{SIZES[-1]} and {count} Karmada"
            idle[label], polling[label] = await costs.idle()
    _print(idle, polling, changes)
    ratios, broken = _compare(idle, polling, changes)
    report.write(
        "reconcile",
        figures={
            "load_before": load,
            "idle": _plain(idle),
            f"poller_every_{POLL_EVERY:g}_s": _plain(polling),
            "changes": _plain(changes),
        },
        ratios=ratios,
    )
    return broken


def _plain(figures: dict[Any, Any]) -> dict[str, Any]:
    return {str(name): asdict(figure) for name, figure in figures.items()}


def _compare(
    idle: dict[str, Idle], polling: dict[str, Idle], changes: dict[int, Changes]
) -> tuple[dict[str, float], list[str]]:
    few, many = str(SIZES[0]), str(SIZES[-1])
    fewest, most = changes[SIZES[0]], changes[SIZES[-1]]
    flat = {
        "idle CPU, %": (idle[few].cpu_percent, idle[many].cpu_percent),
        "idle requests per second": (idle[few].requests_per_second, idle[many].requests_per_second),
        "CPU per change, ms": (fewest.cpu_ms_per_change, most.cpu_ms_per_change),
    }
    broken = [
        f"{what}: {before:g} with {few} objects, {after:g} with {many}"
        for what, (before, after) in flat.items()
        if after > TOLERATED_FACTOR * before + TOLERATED_NOISE[what]
    ]
    ratios = {f"{what}, {many} objects to {few}": after / before for what, (before, after) in flat.items() if before}
    ratios |= {
        f"idle CPU to a poller's, {many} objects": idle[many].cpu_percent / polling[many].cpu_percent,
        f"idle requests to a poller's, {many} objects": (
            idle[many].requests_per_second / polling[many].requests_per_second
        ),
        f"change to reconcile p50 to a kubectl watch's, {many} objects": (
            most.reconcile.p50_ms / most.kubectl_watch.p50_ms
        ),
        f"change to reconcile p99 to a kubectl watch's, {many} objects": (
            most.reconcile.p99_ms / most.kubectl_watch.p99_ms
        ),
        # On average a change waits for half an interval.
        f"a poller's wait for a change to ours, {many} objects": POLL_EVERY * 1000 / 2 / most.reconcile.p50_ms,
    }
    return {name: round(value, 3) for name, value in ratios.items()}, broken


def _print(idle: dict[str, Idle], polling: dict[str, Idle], changes: dict[int, Changes]) -> None:
    report.table(
        f"idle: controller-manager, and a poller that lists every {POLL_EVERY:g} s",
        ["objects", "CPU %", "MiB", "requests/s", "poller CPU %", "MiB", "requests/s"],
        [
            [label, *(f"{value:.2f}" for each in (idle[label], polling[label]) for value in asdict(each).values())]
            for label in idle
        ],
    )
    report.table(
        f"{CHANGES} changes, each to the reconcile, and to the line of `kubectl get --watch`: ms",
        ["objects", "p50", "p99", "kubectl p50", "p99", "CPU per change", "requests per change"],
        [
            [
                str(size),
                *(f"{value:.1f}" for each in (row.reconcile, row.kubectl_watch) for value in asdict(each).values()),
                f"{row.cpu_ms_per_change:.2f}",
                f"{row.requests_per_change:.2f}",
            ]
            for size, row in changes.items()
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail unless cost follows changes and not objects")
    parser.add_argument("--poll", type=Path, metavar="KUBECONFIG", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    # SIGTERM acts like Ctrl-C, so that the plane is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments.poll:
        asyncio.run(poll(arguments.poll))
    broken = asyncio.run(measure())
    for line in broken:
        print(f"grows with the objects: {line}", file=sys.stderr)
    return 1 if arguments.check and broken else 0


if __name__ == "__main__":
    sys.exit(main())
