"""Measures the idle cost of the controllers with many instances and clusters, and how soon a change takes effect.

    python benchmarks/controllers.py                     writes results/controllers.json; takes a quarter of an hour
    python benchmarks/controllers.py --sizes 10 100      smaller, and nothing is written

The benchmark runs a real global cluster with `kairship controller-manager` as `kairship up` runs it, with 10, 100 and
1,000 clusters and a tenth as many instances. Behind them are a few real Karmadas and Kubernetes clusters: a relay
presents each of them as many, by changing their identity (`benchmarks/relay` says what it changes). The
controller-manager has the same connections and watches to each of them as to a real one. Instances are adopted, which
is the most expensive kind, because the state of all their components is requested over the network.

Clusters are added by the hundred, each hundred when all of the one before are ready; the benchmark does not measure how
fast a plane processes a thousand that appear at once. Results are written after each size. When `--minutes` are nearly
over, or a hundred do not become ready, the clusters that exist by then are measured.

Joining is real on both sides too. But two real Karmadas are not fifty: with hundreds of members each, on the few cores
that everything shares, they would dominate the measurement. So of the ten clusters for each instance `--joined` join,
and the others are only registered, watched and probed. Container management does not run: it is a separate process.

The idle figures are measured over some seconds: the CPU of the controller-manager in percent of one core, its
proportional set size, its requests to the global API server, counted in the audit log by its service account, and the
requests to instances and clusters, counted by the relay. Then changes are made one after the other:

  inside    a Deployment is created in an instance, until the Instance's summary counts it
  cluster   a label of a Cluster in the global cluster changes, until Karmada's Cluster has it

They are measured from before the request is sent until a watch shows the result. The statistics controller writes at
most once a second for one instance, so changes of one instance are further apart than that.
"""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import psutil
import report
from aiohttp import ClientSession, ClientTimeout
from processes.many_planes import LABEL, ManyPlanes, many_planes, world
from processes.measured_plane import Latency, Plane, running_plane
from prometheus_client.parser import text_string_to_metric_families

from kairship.controllers.global_cluster import CLUSTER, INSTANCE, MEMBERSHIP, ObservedInstance
from kairship.controllers.membership.membership_status import KnownMembership
from kairship.embedded import metrics_token, plane_processes
from kairship.kube import Client, Connection, KubeError, Resource, kinds
from kairship.reconcile import MetadataOnly, Metrics, Reflector, Selection, SystemClock
from kairship.resources import (
    NAMESPACE,
    InstanceCondition,
    InstanceState,
    MembershipCondition,
    is_true,
)

SIZES = (10, 100, 1000)
KARMADAS, MEMBERS = 2, 2
EACH, JOINED = 10, 1
AT_ONCE = 16
AT_A_TIME = 100
SETTLING, WINDOW = 10.0, 20.0
CHANGES = 40
APART = 1.2
PATIENCE = 180.0
MINUTES = 15.0
MEASURING = 150.0
"""The maximum time to measure one size and to stop the plane. If less is left, no more clusters are added."""
LOOK_AGAIN = 3.0
"""The interval of reads of the controller-manager's metrics: with thousands of series one costs part of a second."""
CHANGING = 45.0
"""The time for the changes of one kind. As many are made as fit, up to `CHANGES`."""

DEPLOYMENT: dict[str, Any] = {
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]},
    },
}


@dataclass(frozen=True)
class Steady:
    cpu_percent: float
    memory_mib: float
    global_requests_per_second: float
    instance_requests_per_second: float
    cluster_requests_per_second: float


@dataclass(frozen=True)
class Figures:
    instances: int
    joined: int
    seconds_to_take_up: float
    """The time from the creation of the first object until all objects are ready."""
    steady: Steady
    inside: Latency
    cluster: Latency
    problem: str = ""
    """Why the size is smaller than requested, or why not all objects are ready."""


class Followed:
    """The objects of an API server, followed by a watch."""

    def __init__(self, client: Client, resource: Resource, shape: type[Any]) -> None:
        selection: Selection[Any] = Selection(resource, shape)
        self._reflector = Reflector(client, selection, clock=SystemClock(), metrics=Metrics())
        self._news = asyncio.Event()

    async def run(self) -> None:
        self._reflector.subscribe(lambda _: self._news.set())
        await self._reflector.run()

    def get(self, name: str) -> Any:
        return self._reflector.store.get(name)

    async def until(self, missing: Callable[[], object], what: str) -> None:
        """Returns when nothing is missing."""
        try:
            async with asyncio.timeout(PATIENCE):
                while missing():
                    await self._news.wait()
                    self._news.clear()
        except TimeoutError:
            raise TimeoutError(f"{what}: not after {PATIENCE:g} s, missing: {missing()!s:.200}") from None


class Fleet:
    """The instances and clusters of the plane."""

    def __init__(self, plane: Plane, planes: ManyPlanes, joined: int) -> None:
        self._plane = plane
        self._planes = planes
        self._joined = joined
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.instances = 0
        self.clusters = 0
        self.objects = Followed(plane.client, INSTANCE, ObservedInstance)
        self.memberships = Followed(plane.client, MEMBERSHIP, KnownMembership)
        self.inside = [Followed(planes.behind(number), kinds.CLUSTERS, MetadataOnly) for number in range(KARMADAS)]
        self.deployments: dict[int, int] = {}

    @property
    def joined(self) -> list[int]:
        """The clusters that belong to instances."""
        return [number for number in range(self.clusters) if number % EACH < self._joined]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for followed in (self.objects, self.memberships, *self.inside):
                tasks.create_task(followed.run())

    async def grow_to(self, clusters: int) -> float:
        """Returns how long it took until everything was ready."""
        instances, begin = clusters // EACH, time.monotonic()
        await self._each(self._add_instance(number) for number in range(self.instances, instances))
        self.instances = instances
        await self._each(self._add_cluster(number) for number in range(self.clusters, clusters))
        self.clusters = clusters
        await self.objects.until(self._not_whole, f"{instances} instances")
        await self.memberships.until(self._not_joined, f"{len(self.joined)} members")
        await self._until_connected()
        return time.monotonic() - begin

    async def _until_connected(self) -> None:
        end = time.monotonic() + PATIENCE
        while missing := await self._unconnected():
            if time.monotonic() > end:
                raise TimeoutError(f"{missing} planes are not connected after {PATIENCE:g} s")
            await asyncio.sleep(LOOK_AGAIN)

    def whole(self) -> list[int]:
        """The instances that are ready."""
        return [number for number in range(self.instances) if self._is_whole(number)]

    def members(self) -> list[int]:
        """The clusters that have joined."""
        return [number for number in self.joined if self._has_joined(number)]

    def _not_whole(self) -> list[str]:
        return [instance_name(number) for number in range(self.instances) if not self._is_whole(number)]

    def _not_joined(self) -> list[str]:
        return [cluster_name(number) for number in self.joined if not self._has_joined(number)]

    def instance_of(self, cluster: int) -> int:
        return cluster // EACH

    async def _each(self, works: Any) -> None:
        async def in_turn(work: Coroutine[Any, Any, None]) -> None:
            async with self._turns:
                await work

        async with asyncio.TaskGroup() as tasks:
            for work in works:
                tasks.create_task(in_turn(work))

    async def _add_instance(self, number: int) -> None:
        await self._planes.prepare(number)
        name, secret = instance_name(number), f"adopted-{number:05}"
        await self._store(secret, self._planes.instance(number))
        spec = {"driver": "external", "kubeconfigSecret": {"name": secret}}
        await self._plane.client.create(INSTANCE, {"metadata": {"name": name}, "spec": spec})

    async def _add_cluster(self, number: int) -> None:
        name, client = cluster_name(number), self._plane.client
        instance = self.instance_of(number)
        await self._store(f"cluster-{name}", self._planes.cluster(number))
        metadata = {"name": name, "labels": {LABEL: world(instance)}}
        await client.create(CLUSTER, {"metadata": metadata, "spec": {"credentials": {"name": f"cluster-{name}"}}})
        if number % EACH < self._joined:
            membership = {"metadata": {"name": name}, "spec": {"instance": instance_name(instance)}}
            await client.create(MEMBERSHIP, membership)

    async def _store(self, name: str, connection: Connection) -> None:
        content = {"kubeconfig": connection.to_kubeconfig(name="benchmark").decode()}
        secret = {"metadata": {"name": name}, "stringData": content}
        await self._plane.client.create(kinds.SECRETS, secret, namespace=NAMESPACE)

    def _is_whole(self, number: int) -> bool:
        found = self.objects.get(instance_name(number))
        if found is None or found.status.state is not InstanceState.RUNNING or found.status.summary is None:
            return False
        synced = is_true(found.status.conditions, InstanceCondition.VIRTUAL_CLUSTER_SYNCED)
        return synced and bool(found.status.summary.clusters.total == self._joined)

    def _has_joined(self, number: int) -> bool:
        found = self.memberships.get(cluster_name(number))
        wanted = (MembershipCondition.JOINED, MembershipCondition.READY)
        return found is not None and all(is_true(found.status.conditions, kind) for kind in wanted)

    async def _unconnected(self) -> int:
        """The number of planes that the controller-manager cannot use yet, by its own metrics."""
        [status] = await self._plane.supervisor.status(plane_processes.CONTROLLER_MANAGER)
        url = f"http://127.0.0.1:{status.ports[0]}/metrics"
        headers = {"Authorization": f"Bearer {metrics_token.ensure(self._plane.home).read_text()}"}
        async with ClientSession(timeout=ClientTimeout(30), headers=headers) as session, session.get(url) as reply:
            families = text_string_to_metric_families(await reply.text())
        connected = sum(
            int(sample.value)
            for family in families
            for sample in family.samples
            if sample.name == "kairship_pool_connected"
        )
        return self.clusters + 2 * self.instances - connected  # each instance has a virtual cluster as well


def instance_name(number: int) -> str:
    return f"i-{number:05}"


def cluster_name(number: int) -> str:
    return f"m-{number:05}"


async def measure_steady(plane: Plane, planes: ManyPlanes) -> Steady:
    await asyncio.sleep(SETTLING)
    begin, cpu, asked = time.time(), await plane.cpu_seconds(), await planes.requests()
    await asyncio.sleep(WINDOW)
    used, asked_then, end = await plane.cpu_seconds() - cpu, await planes.requests(), time.time()
    seconds = end - begin
    return Steady(
        cpu_percent=round(100 * used / seconds, 2),
        memory_mib=round(await plane.memory_bytes() / 1024**2, 1),
        global_requests_per_second=round(len(plane.audit.between(begin, end)) / seconds, 2),
        instance_requests_per_second=round((asked_then.instances - asked.instances) / seconds, 1),
        cluster_requests_per_second=round((asked_then.clusters - asked.clusters) / seconds, 1),
    )


async def measure_inside(planes: ManyPlanes, fleet: Fleet) -> Latency:
    taken: list[float] = []
    whole, end = fleet.whole(), time.monotonic() + CHANGING
    last = dict.fromkeys(whole, 0.0)
    for change in range(CHANGES):
        if time.monotonic() > end and len(taken) > 1:
            break
        number = whole[change % len(whole)]
        await asyncio.sleep(max(0.0, last[number] + APART - time.monotonic()))
        expected = fleet.deployments[number] = fleet.deployments.get(number, 0) + 1
        begin = time.monotonic()
        await planes.behind(number).create(
            kinds.DEPLOYMENTS,
            {"metadata": {"name": f"web-{expected}"}, "spec": DEPLOYMENT},
            namespace=world(number),
        )

        def uncounted(number: int = number, expected: int = expected) -> bool:
            summary = fleet.objects.get(instance_name(number)).status.summary
            return bool(summary.workloads["Deployment"].total != expected)

        await fleet.objects.until(uncounted, f"a Deployment in instance {number}")
        last[number] = time.monotonic()
        taken.append(last[number] - begin)
    return Latency.of(taken)


async def measure_cluster(plane: Plane, fleet: Fleet) -> Latency:
    taken: list[float] = []
    members, end = fleet.members(), time.monotonic() + CHANGING
    for change in range(CHANGES):
        if time.monotonic() > end and len(taken) > 1:
            break
        number = members[change % len(members)]
        name, mark = cluster_name(number), f"{fleet.clusters}-{change}"
        karmada = fleet.inside[fleet.instance_of(number) % KARMADAS]
        begin = time.monotonic()
        await plane.client.patch(CLUSTER, name, {"metadata": {"labels": {"change": mark}}})

        def not_there(name: str = name, mark: str = mark, karmada: Followed = karmada) -> bool:
            return (karmada.get(name).metadata.labels or {}).get("change") != mark

        await karmada.until(not_there, f"a label of cluster {name}")
        taken.append(time.monotonic() - begin)
    return Latency.of(taken)


async def take_up(fleet: Fleet, size: int, deadline: float) -> tuple[float, str]:
    """Returns how long it took, and why that size was not reached."""
    began, problem = time.monotonic(), ""
    while fleet.clusters < size and not problem:
        if deadline - time.monotonic() < MEASURING:
            problem = "no time is left"
            continue
        try:
            took = await fleet.grow_to(min(size, fleet.clusters + AT_A_TIME))
            print(f"{fleet.clusters} clusters and {fleet.instances} instances, the last after {took:.1f} s", flush=True)
        except* (TimeoutError, KubeError) as errors:
            problem = str(errors.exceptions[0])
    return time.monotonic() - began, problem


async def measure(sizes: Sequence[int], joined: int, minutes: float) -> AsyncGenerator[tuple[int, Figures]]:
    """Yields the figures of each size as soon as it is measured, and those of an incomplete last size."""
    deadline = time.monotonic() + 60 * minutes
    async with running_plane() as plane, many_planes(plane, karmadas=KARMADAS, members=MEMBERS) as planes:
        fleet = Fleet(plane, planes, joined)
        following = asyncio.create_task(fleet.run())
        try:
            for size in sizes:
                took, problem = await take_up(fleet, size, deadline)
                if problem:
                    print(f"{size} clusters are not taken up on this machine as it is: {problem}", flush=True)
                steady = await measure_steady(plane, planes)
                print(f"{fleet.clusters} clusters at rest: {steady}", flush=True)
                yield (
                    fleet.clusters,
                    Figures(
                        instances=fleet.instances,
                        joined=len(fleet.members()),
                        seconds_to_take_up=round(took, 1),
                        steady=steady,
                        inside=await measure_inside(planes, fleet),
                        cluster=await measure_cluster(plane, fleet),
                        problem=problem,
                    ),
                )
                if problem:
                    break
        finally:
            following.cancel()


def slopes(figures: dict[int, Figures]) -> dict[str, float]:
    """The cost of one more cluster, with its tenth of an instance, from each size to the next."""
    found: dict[str, float] = {}
    sizes = sorted(figures)
    for few, many in pairwise(sizes):
        before, after = asdict(figures[few].steady), asdict(figures[many].steady)
        for what, value in after.items():
            found[f"{what} per cluster, {few} to {many}"] = round((value - before[what]) / (many - few), 4)
        for kind in ("inside", "cluster"):
            then, now = getattr(figures[few], kind), getattr(figures[many], kind)
            found[f"{kind} p50, {many} to {few}"] = round(now.p50_ms / then.p50_ms, 2)
            found[f"{kind} p99, {many} to {few}"] = round(now.p99_ms / then.p99_ms, 2)
    return found


def show(figures: dict[int, Figures]) -> None:
    report.table(
        "at rest: controller-manager, and the requests that it makes each second",
        [
            "clusters",
            "instances",
            "joined",
            "taken up in, s",
            "CPU %",
            "MiB",
            "to global",
            "to instances",
            "to clusters",
        ],
        [
            [
                str(size),
                str(row.instances),
                str(row.joined),
                f"{row.seconds_to_take_up:g}",
                *(f"{value:g}" for value in asdict(row.steady).values()),
            ]
            for size, row in figures.items()
        ],
    )
    report.table(
        f"up to {CHANGES} changes, until they show: ms",
        ["clusters", "inside p50", "p99", "cluster p50", "p99"],
        [
            [str(size), *(f"{value:.0f}" for each in (row.inside, row.cluster) for value in asdict(each).values())]
            for size, row in figures.items()
        ],
    )


async def run(sizes: Sequence[int], joined: int, minutes: float) -> None:
    load = round(psutil.getloadavg()[0], 2)
    figures: dict[int, Figures] = {}
    async with aclosing(measure(sizes, joined, minutes)) as measured:
        async for size, found in measured:
            figures[size] = found
            show(figures)
            steps = slopes(figures)
            rows = [[what, f"{value:g}"] for what, value in steps.items()]
            report.table("slopes", ["from each size to the next", ""], rows)
            if tuple(sizes) == SIZES:
                plain = {str(size): asdict(row) for size, row in figures.items()}
                report.write("controllers", figures={"load_before": load, **plain}, ratios=steps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of clusters")
    parser.add_argument("--joined", type=int, default=JOINED, help="how many of ten join")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long it may take")
    arguments = parser.parse_args()
    # SIGTERM acts like Ctrl-C, so that the plane is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asyncio.run(run(arguments.sizes, arguments.joined, arguments.minutes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
