"""Compares the native proxy with the instance's own API server, in one run, with HTTPS and authentication.

    python benchmarks/proxy.py [--objects 10000] [--watches 1000]

Both have the same objects. The proxy answers reads from the index and forwards writes. Times are those of one client
that costs hardly any CPU; server CPU is what the answering process used per request. client-go's own informer is
measured as well, in JSON and in protobuf, which the proxy forwards. Terminals and logs end at the same pod of a member,
with and without the entrance. At 10,000 objects the last table has the targets.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import report
from index import IN_NAMESPACE, create
from proxied import dead, idle, streams
from proxied.bench import DEAD_MEMBER, INSTANCE, LIVING_MEMBER, NAMESPACE, OTHER, POD, ProxyBench, measured
from proxied.informers import informers
from proxied.shared_with_tests import write_log
from proxied.side import PATH, Side, by_turns

from kairship.kube import Client, kinds, ssl_context
from kairship.rpc.native_access import NativeEndpoint

GETS, GETS_AT_ONCE, WRITES, ECHOES, LOG_MEGABYTES = 30, 50, 300, 300, 20
WRITTEN = "/api/v1/namespaces/ns-0/configmaps/written"
PASSED_ON = f"/api/v1/namespaces/{NAMESPACE}/secrets?limit=1"
IN_MEMBER = f"/apis/cluster.karmada.io/v1alpha1/clusters/{DEAD_MEMBER}/proxy"
FASTER = {"get": 2.0, "list a namespace": 4.0, "list by a rare label": 4.0, "list all": 2.5, "WatchList": 5.0}
"""The targets: how many times faster than the direct request, at 10,000 objects."""
LESS_CPU, WRITE_RATIO, WATCH_KB = 4.0, 1.25, 150.0
P99_RATIO = 1.5
"""The noise of a p99, below which a difference counts as none."""

Figures = dict[str, Any]


async def run(count: int, watches: int) -> None:
    began = time.monotonic()
    async with measured() as bench:
        print(f"up after {time.monotonic() - began:.0f} s", flush=True)
        figures = await compare(bench, count, watches)
    tell(count, figures)


async def compare(bench: ProxyBench, count: int, watches: int) -> Figures:
    through, direct = bench.through(NativeEndpoint(INSTANCE)), bench.direct()
    async with Client(bench.instance) as instance:
        await create(instance, count)
        body = {"metadata": {"name": "written"}, "data": {"value": "0"}}
        await instance.create(kinds.CONFIGMAPS, body, namespace="ns-0")
    await asyncio.to_thread(until_indexed, through, count)
    await asyncio.to_thread(bench.until_quiet)
    print("everything is made", flush=True)
    figures: Figures = {}
    parts: dict[str, Callable[[], Awaitable[Any]]] = {
        "reads": lambda: asyncio.to_thread(reads, through, direct, count),
        "streams": lambda: terminals_and_logs(bench),
        "beside_the_dead": lambda: asyncio.to_thread(beside_the_dead, bench, through),
        "client_go_s": lambda: informers(
            NativeEndpoint(INSTANCE), bench.outside, bench.instance, bench.plane.home.root
        ),
        "idle_watch_kb": lambda: asyncio.to_thread(idle_watches, bench, through, watches),
    }
    for name, measure in parts.items():
        began = time.monotonic()
        figures[name] = await measure()
        print(f"{name} took {time.monotonic() - began:.0f} s", flush=True)
    for side in (through, direct):
        side.close()
    return figures


def reads(through: Side, direct: Side, count: int) -> dict[str, dict[str, dict[str, float]]]:
    namespaces = -(-count // IN_NAMESPACE)
    number = min(1, namespaces - 1)
    one = f"{PATH}/namespaces/ns-{number}/deployments/app-{number * IN_NAMESPACE + 1:06}"
    sides = {"direct": direct, "proxy": through}
    gets = by_turns(sides, lambda side, _: side.get(one), turns=GETS, at_once=GETS_AT_ONCE)
    writes = by_turns(sides, lambda side, value: side.patch(WRITTEN, value), turns=WRITES)
    return {name: {"get": gets[name], **side.lists(namespaces), "write": writes[name]} for name, side in sides.items()}


async def terminals_and_logs(bench: ProxyBench) -> dict[str, dict[str, float]]:
    pod = f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}"
    by_entrance, by_instance = NativeEndpoint(INSTANCE, DEAD_MEMBER).path + pod, IN_MEMBER + pod
    ways = {
        "proxy": (bench.outside, bench.token, bench.at_entrance(), by_entrance),
        "direct": (bench.instance, {}, bench.at_instance(), by_instance),
    }
    last = "that was all"
    write_log(bench.plane, *streams.log_lines(LOG_MEGABYTES, last))
    found = {}
    for name, (connection, headers, client, path) in ways.items():
        url, tls = connection.server + path, ssl_context(connection)
        echo = await streams.echo(url, tls, headers, times=ECHOES)
        logged = await asyncio.to_thread(streams.logs, client, path, last, LOG_MEGABYTES)
        found[name] = {"echo_p50_ms": echo["p50_ms"], "echo_p99_ms": echo["p99_ms"], "logs_mb_s": logged}
    return found


def beside_the_dead(bench: ProxyBench, through: Side) -> dict[str, dict[str, float]]:
    asked, found = bench.at_entrance(), {}
    member = bench.through(NativeEndpoint(INSTANCE, LIVING_MEMBER))
    for what, side, silent in (
        ("an instance beside a dead member", through, NativeEndpoint(INSTANCE, DEAD_MEMBER)),
        ("a member beside a dead member", member, NativeEndpoint(INSTANCE, DEAD_MEMBER)),
        ("an instance beside a dead instance", through, NativeEndpoint(OTHER)),
    ):
        pid = bench.apiserver_of(silent.cluster or silent.instance)
        until_back(bench, silent)
        found[what] = dead.beside(side, PASSED_ON, pid=pid, asked=asked, dead=silent.path + PASSED_ON)
    return found


def until_back(bench: ProxyBench, way: NativeEndpoint) -> None:
    """Returns when the entrance uses a server again, which it retries some seconds after it did not answer."""
    client, deadline = bench.at_entrance(), time.monotonic() + 60
    while client.get(way.path + PASSED_ON).status != 200:
        assert time.monotonic() < deadline, f"{way} does not come back"
        time.sleep(0.5)
    client.close()


def idle_watches(bench: ProxyBench, through: Side, count: int) -> float:
    return idle.slope(through, idle.watchers(bench.at_entrance(), NativeEndpoint(INSTANCE), count), count)


def until_indexed(through: Side, count: int) -> None:
    last = f"{PATH}/namespaces/ns-{(count - 1) // IN_NAMESPACE}/deployments/app-{count - 1:06}"
    deadline = time.monotonic() + 300
    while through.source(last) != "index":
        assert time.monotonic() < deadline, "the index does not answer"
        time.sleep(0.2)


def tell(count: int, figures: Figures) -> None:
    ours, theirs = figures["reads"]["proxy"], figures["reads"]["direct"]
    faster = {name: theirs[name]["p50_ms"] / ours[name]["p50_ms"] for name in ours}
    less_cpu = {name: theirs[name]["cpu_ms"] / max(ours[name]["cpu_ms"], 0.01) for name in ours}
    rows = [
        [
            name,
            *(f"{side[name]['p50_ms']:.2f}" for side in (ours, theirs)),
            f"{faster[name]:.2f}",
            *(f"{side[name]['cpu_ms']:.2f}" for side in (ours, theirs)),
            f"{less_cpu[name]:.2f}",
        ]
        for name in ours
    ]
    columns = ["", "proxy p50 ms", "direct", "times faster", "proxy CPU ms", "direct", "times less"]
    report.table(f"{count} Deployments", columns, rows)
    streamed = figures["streams"]
    rows = [[name, *(f"{streamed[side][name]:.2f}" for side in ("proxy", "direct"))] for name in streamed["proxy"]]
    rows += [
        [f"client-go {wire} s", *(f"{found[side]:.2f}" for side in ("proxy", "direct"))]
        for wire, found in figures["client_go_s"].items()
    ]
    report.table("", ["", "proxy", "direct"], rows)
    beside = figures["beside_the_dead"]
    rows = [[name, f"{found['p99_alive_ms']:.1f}", f"{found['p99_beside_ms']:.1f}"] for name, found in beside.items()]
    report.table("", ["", "p99 ms, all alive", "beside the dead"], rows)
    report.table("", ["", "KB"], [["an idle watch", f"{figures['idle_watch_kb']:.0f}"]])
    met = {f"{name} {wanted:g} times faster": faster[name] >= wanted for name, wanted in FASTER.items()}
    met |= {f"{name} with {LESS_CPU:g} times less CPU": less_cpu[name] >= LESS_CPU for name in FASTER}
    met |= {
        f"a write takes at most {WRITE_RATIO} of direct": 1 / faster["write"] <= WRITE_RATIO,
        f"an idle watch at most {WATCH_KB:g} KB": figures["idle_watch_kb"] <= WATCH_KB,
    }
    met |= {
        f"p99 of {name} at most {P99_RATIO:g} of alone": found["ratio"] <= P99_RATIO for name, found in beside.items()
    }
    report.table("", ["target", ""], [[name, "met" if holds else "MISSED"] for name, holds in met.items()])
    ratios = {f"{name}: time": ratio for name, ratio in faster.items()}
    ratios |= {f"{name}: CPU": ratio for name, ratio in less_cpu.items()}
    report.write("proxy" if count == 10_000 else f"proxy_{count}", figures={"objects": count, **figures}, ratios=ratios)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--watches", type=int, default=1000)
    given = parser.parse_args()
    asyncio.run(run(given.objects, given.watches))
