"""The native proxy beside the instance's own API server: same objects, one run, HTTPS, authentication on.

    python benchmarks/proxy.py [--objects 10000] [--clients]

Reads are answered from the index, writes are passed on. Times are what one client sees that costs next to nothing;
server CPU is what the answering process used per request. Targets: a write takes at most 1.25 of what it takes directly
(p50); the initial events of a watch come 5 times faster; an idle watch costs at most 150 KB; a member cluster that does
not answer adds nothing to what others wait for. With `--clients`, client-go's own informer is measured too, in JSON and
in protobuf.
"""

import argparse
import asyncio
import json
import os
import signal
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import psutil
import report
from index import END, IN_NAMESPACE, WATCH_LIST, create
from lean_client import Answer, LeanClient, cpu_of, measure

from kairship.embedded import EmbeddedPlane, Home, demo, roles
from kairship.engine import Engine
from kairship.kube import Client, Connection, kinds, native_access, ssl_context
from kairship.kube.kubeconfig import UserEntry
from kairship.kube.native_access import Way
from kairship.supervisor import daemon

INSTANCE, MEMBER = "demo", demo.MEMBERS[0].name
PATH = "/apis/apps/v1"
WRITES, GETS, IDLE, STUCK = 300, 300, 1000, 64
PER_CALLER = 150
WATCH_KB, WRITE_RATIO, WATCH_LIST_RATIO = 150.0, 1.25, 5.0


class Silent:
    def doing(self, subject: str, activity: str) -> None:
        """Nobody watches."""

    def done(self, subject: str, outcome: str) -> None:
        """Nobody watches."""


class Side:
    """One of the two that are compared. `path` is in front of what Kubernetes calls its paths."""

    def __init__(
        self, url: str, tls: ssl.SSLContext, processes: list[psutil.Process], path: str, **headers: str
    ) -> None:
        self._client = LeanClient(url, tls, {"Accept": "application/json", **headers})
        self._processes = processes
        self._path = path

    def get(self, path: str, *, keep: bool = False) -> Answer:
        answer = self._client.get(self._path + path, keep=keep)
        assert answer.status == 200, (path, answer.status, answer.body[:300])
        return answer

    def watch_list(self, *, keep: bool = False) -> Answer:
        return self._client.get(f"{self._path}{PATH}/deployments?{WATCH_LIST}", until=END, keep=keep)

    def patch(self, path: str, value: int) -> Answer:
        body = json.dumps({"data": {"value": str(value)}}).encode()
        answer = self._client.send("PATCH", self._path + path, body, {"Content-Type": "application/merge-patch+json"})
        assert answer.status == 200, answer.status
        return answer

    def measure(self, work: Callable[..., Answer], times: int) -> dict[str, float]:
        return measure(work, times, *self._processes)

    def source(self, path: str) -> str:
        return self._client.get(self._path + path).headers.get("x-kairship-source", "")

    def cpu(self) -> float:
        return cpu_of(*self._processes)

    def memory(self) -> float:
        """In KB."""
        return sum(process.memory_info().rss for process in self._processes) / 1e3

    def close(self) -> None:
        self._client.close()


def reads(side: Side, namespaces: int) -> dict[str, dict[str, float]]:
    def reading(path: str) -> Callable[..., Answer]:
        return partial(side.get, PATH + path)

    place = f"/namespaces/ns-{min(1, namespaces - 1)}/deployments"
    name = f"app-{min(1, namespaces - 1) * IN_NAMESPACE + 1:06}"
    return {
        "get": side.measure(reading(f"{place}/{name}"), GETS),
        "list a namespace": side.measure(reading(place), 20),
        "list by a rare label": side.measure(reading("/deployments?labelSelector=rare%3D7"), 20),
        "list all": side.measure(reading("/deployments"), 3),
        "WatchList": side.measure(side.watch_list, 3),
    }


def writes(through: Side, direct: Side) -> dict[str, dict[str, float]]:
    """By turns, so that both meet the same disk and the same machine."""
    path = "/api/v1/namespaces/ns-0/configmaps/written"
    seconds: dict[str, list[float]] = {"proxy": [], "direct": []}
    cpu = {"proxy": 0.0, "direct": 0.0}
    for number in range(WRITES):
        for name, side in (("direct", direct), ("proxy", through)):
            before = side.cpu()
            seconds[name].append(side.patch(path, number).seconds)
            cpu[name] += side.cpu() - before
    return {
        name: {"p50_ms": statistics.median(times) * 1e3, "cpu_ms": cpu[name] / WRITES * 1e3}
        for name, times in seconds.items()
    }


def idle_watches(through: Side, open_one: Callable[[int], LeanClient]) -> float:
    """KB for each, as the slope between a few and many: what a first one costs is there once."""
    held = [open_one(number) for number in range(IDLE // 5)]
    time.sleep(1.0)
    few = through.memory()
    held += [open_one(number) for number in range(len(held), IDLE)]
    time.sleep(1.0)
    slope = (through.memory() - few) / (IDLE - IDLE // 5)
    for client in held:
        client.close()
    return slope


def p99(side: Side) -> float:
    """In milliseconds, of a request that is passed on."""
    path = "/api/v1/namespaces/ns-0/secrets?limit=1"
    return sorted(side.get(path).seconds for _ in range(GETS))[int(GETS * 0.99) - 1] * 1e3


def beside_a_dead_member(through: Side, member: LeanClient, pid: int) -> dict[str, float]:
    alone = p99(through)
    path = f"{Way(INSTANCE, MEMBER).path}/api/v1/namespaces/default/configmaps?limit=1"
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(STUCK) as pool:
            for _ in range(STUCK):
                pool.submit(member.another().get, path)
            time.sleep(1.0)
            during = p99(through)
            os.kill(pid, signal.SIGCONT)  # those who wait for it come to an end
    finally:
        os.kill(pid, signal.SIGCONT)
    return {"p99_alone_ms": alone, "p99_beside_a_dead_member_ms": during}


async def run(count: int, *, with_clients: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="kairship-bench-", ignore_cleanup_errors=True) as directory:
        plane = EmbeddedPlane(Home(Path(directory)), await Engine.find())
        try:
            await plane.up(Silent(), demo.MEMBERS[:1])
            await compare(plane, count, with_clients=with_clients)
        finally:
            await daemon.stop(Path(directory))


async def compare(plane: EmbeddedPlane, count: int, *, with_clients: bool) -> None:
    connection = await plane.instance_connection()
    async with Client(connection) as instance:
        await create(instance, count)
        body = {"metadata": {"name": "written"}, "data": {"value": "0"}}
        await instance.create(kinds.CONFIGMAPS, body, namespace="ns-0")
    entrance = await roles.reach(plane.supervisor, plane.home)
    outside = Connection(
        server=entrance.server, ca=Path(entrance.ca).read_bytes(), token=Path(entrance.token_file).read_text()
    )
    server = psutil.Process(await pid_of(plane, "apiserver"))
    [apiserver] = [
        status.pid
        for status in await plane.supervisor.status()
        if status.name.endswith("/kube-apiserver") and f"instance-{INSTANCE}" in status.name and status.pid
    ]
    member = [
        status.pid
        for status in await plane.supervisor.status()
        if status.name.endswith("/kube-apiserver") and MEMBER in status.name and status.pid
    ]
    tls = ssl_context(outside)
    token = {"Authorization": f"Bearer {outside.token}"}
    through = Side(outside.server, tls, [server, *server.children()], Way(INSTANCE).path, **token)
    direct = Side(
        connection.server, ssl_context(connection), [psutil.Process(apiserver)], "", **{"Accept-Encoding": "gzip"}
    )
    await asyncio.to_thread(until_indexed, through, count)
    namespaces = -(-count // IN_NAMESPACE)
    figures = {
        "proxy": await asyncio.to_thread(reads, through, namespaces),
        "direct": await asyncio.to_thread(reads, direct, namespaces),
    }
    written = await asyncio.to_thread(writes, through, direct)
    for name, figure in written.items():
        figures[name]["write"] = {**figure, "bytes": 1.0}
    lone = LeanClient(outside.server, tls, token)
    other = await asyncio.to_thread(beside_a_dead_member, through, lone, member[0])
    if with_clients:
        other |= await client_go(plane, outside, connection)
    other["idle_watch_kb"] = await asyncio.to_thread(idle_watches, through, await watchers(outside, tls))
    for side in (through, direct):
        side.close()
    tell(count, figures, other)


async def pid_of(plane: EmbeddedPlane, process: str) -> int:
    [pid] = [s.pid for s in await plane.supervisor.status() if s.name.endswith(f"/{process}") and s.pid]
    return pid


def until_indexed(through: Side, count: int) -> None:
    last = f"{PATH}/namespaces/ns-{(count - 1) // IN_NAMESPACE}/deployments/app-{count - 1:06}"
    deadline = time.monotonic() + 300
    while through.source(last) != "index":
        assert time.monotonic() < deadline, "the index does not answer"
        time.sleep(0.2)


async def watchers(outside: Connection, tls: ssl.SSLContext) -> Callable[[int], LeanClient]:
    """Opens the watch of a number, as many for one token as one caller may have."""
    path = f"{Way(INSTANCE).path}/api/v1/namespaces/default/configmaps?watch=true&resourceVersion="
    lone = LeanClient(outside.server, tls, {"Authorization": f"Bearer {outside.token}"})
    at = json.loads(lone.get(f"{Way(INSTANCE).path}/api/v1/namespaces/default/configmaps", keep=True).body)
    lone.close()
    callers = [outside.token, *(await people(outside, tls, -(-IDLE // PER_CALLER) - 1))]

    def open_one(number: int) -> LeanClient:
        client = LeanClient(outside.server, tls, {"Authorization": f"Bearer {callers[number // PER_CALLER]}"})
        client.begin(path + at["metadata"]["resourceVersion"])
        return client

    return open_one


async def people(outside: Connection, tls: ssl.SSLContext, count: int) -> list[str]:
    """Sessions of administrators who are made for this."""
    admin = LeanClient(outside.server, tls, {"Authorization": f"Bearer {outside.token}"})
    base, first, password = "/apis/ghippo.io/v1alpha1", "the first password of many", "a password of a benchmark"
    form = {"Content-Type": "application/json"}

    def post(path: str, body: object, *, verb: str = "POST", token: str = "") -> dict[str, str]:
        client = LeanClient(outside.server, tls, {"Authorization": f"Bearer {token}"}) if token else admin
        answer = client.send(verb, base + path, msgspec.json.encode(body), form)
        assert answer.status == 200, (path, answer.body)
        return dict(msgspec.json.decode(answer.body))

    tokens = []
    for number in range(count):
        name = f"watcher-{number}"
        made = post("/users", {"name": name, "password": first})
        subject = {"kind": "USER", "id": made["id"]}
        post("/bindings", {"subject": subject, "role": "platform-admin", "target": {"kind": "PLATFORM"}})
        session = post("/login", {"name": name, "password": first})
        change = {"oldPassword": first, "newPassword": password}
        post("/current-user/password", change, verb="PUT", token=session["token"])
        tokens.append(post("/login", {"name": name, "password": password})["token"])
    await asyncio.sleep(5.0)  # their rights arrive inside
    return tokens


async def client_go(plane: EmbeddedPlane, outside: Connection, connection: Connection) -> dict[str, float]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from support.go_programs import build

    binary = await asyncio.to_thread(build, "clients")
    folder, found = plane.home.root, {}
    credential = native_access.kubeconfig(
        Way(INSTANCE),
        server=outside.server,
        ca=outside.ca,
        user="me",
        credential=UserEntry(token=outside.token),
    )
    for name, content in {"proxy": credential, "direct": connection.to_kubeconfig(name="direct")}.items():
        path = folder / f"{name}.kubeconfig"
        path.write_bytes(content)
        for wire in ("json", "protobuf"):
            arguments = ("sync", "-kubeconfig", str(path), f"-protobuf={'true' if wire == 'protobuf' else 'false'}")
            process = await asyncio.create_subprocess_exec(binary, *arguments, stdout=asyncio.subprocess.PIPE)
            out, _ = await process.communicate()
            found[f"client-go {wire}, {name}: s"] = float(msgspec.json.decode(out)["seconds"])
    return found


def tell(count: int, figures: dict[str, dict[str, dict[str, float]]], other: dict[str, float]) -> None:
    ours, theirs = figures["proxy"], figures["direct"]
    ratios = {f"{name}: time": theirs[name]["p50_ms"] / ours[name]["p50_ms"] for name in ours}
    ratios |= {f"{name}: CPU": theirs[name]["cpu_ms"] / max(ours[name]["cpu_ms"], 0.01) for name in ours}
    rows = [
        [
            name,
            *(f"{side[name]['p50_ms']:.2f}" for side in (ours, theirs)),
            f"{ratios[f'{name}: time']:.2f}",
            *(f"{side[name]['cpu_ms']:.2f}" for side in (ours, theirs)),
        ]
        for name in ours
    ]
    report.table(f"{count} Deployments", ["", "proxy p50 ms", "direct", "times faster", "proxy CPU ms", "direct"], rows)
    report.table("", ["", "figure"], [[name, f"{value:.2f}"] for name, value in other.items()])
    met = {
        f"a write takes at most {WRITE_RATIO} of direct": 1 / ratios["write: time"] <= WRITE_RATIO,
        f"initial events {WATCH_LIST_RATIO:g} times faster": ratios["WatchList: time"] >= WATCH_LIST_RATIO,
        f"an idle watch at most {WATCH_KB:g} KB": other["idle_watch_kb"] <= WATCH_KB,
    }
    report.table("", ["target", ""], [[name, "met" if holds else "MISSED"] for name, holds in met.items()])
    name = "proxy" if count == 10_000 else f"proxy_{count}"
    report.write(name, figures={"objects": count, **figures, **other}, ratios=ratios)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--clients", action="store_true")
    given = parser.parse_args()
    asyncio.run(run(given.objects, with_clients=given.clients))
