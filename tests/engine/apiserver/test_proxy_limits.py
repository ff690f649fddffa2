"""Neither an instance that does not answer nor a caller that lists everything slows other instances and callers.

The entrance runs in the test's process. Its proxy leads to a real instance twice: directly, and through a relay that
can fall silent.
"""

import asyncio
import json
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from support.bindings import World, bind, on
from support.entrance import Client, Reply, running
from support.instance_rights import grant
from support.native_proxy import proxy_dependencies
from support.relay import Relay, relay_to
from support.waiting import eventually

from kairship.access import Role
from kairship.apiserver.audit import Spool
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.embedded import EmbeddedPlane
from kairship.kube import Client as KubeClient
from kairship.kube import kinds

BASE = "/apis/kairship.io/v1alpha1/instances"
SILENCE = 12.0
"""Seconds that a request waits for an instance that does not answer. On a busy machine a request that waits for nothing
takes a second or two, and must still be told from one that waited for the silent instance."""
LIMITS = Limits(
    read_seconds=SILENCE,
    running=16,
    running_per_caller=8,
    running_per_destination=8,
    running_per_caller_and_destination=4,
    waiting_per_caller=24,
    waiting_per_destination=40,
)


class Instances:
    def __init__(self, clients: Mapping[str, KubeClient]) -> None:
        self._clients = clients

    def instance(self, name: str) -> KubeClient:
        return self._clients[name]


@pytest.fixture
async def relay(plane: EmbeddedPlane) -> AsyncIterator[Relay]:
    address = urlsplit((await plane.instance_connection()).server)
    async with relay_to(str(address.hostname), int(address.port or 0)) as found:
        yield found


@pytest.fixture
async def entrance(plane: EmbeddedPlane, relay: Relay, tmp_path: Path) -> AsyncIterator[Client]:
    connection = await plane.instance_connection()
    behind_relay = msgspec.structs.replace(connection, server=f"https://{relay.address}")
    people = World(*(bind(name, Role.PLATFORM_ADMIN, on()) for name in ("ann", "bob")))
    spool = Spool(tmp_path / "audit")
    async with KubeClient(connection) as alive, KubeClient(behind_relay) as quiet:
        for name in ("ann", "bob"):
            await grant(alive, name)
        dependencies = proxy_dependencies(Instances({"alive": alive, "quiet": quiet}), people, spool)
        async with running(world=people, limits=LIMITS, proxied=dependencies) as found:
            yield found.client
    spool.close()


def get(client: Client, name: str, instance: str, path: str = "/api/v1/namespaces/default") -> Awaitable[Reply]:
    return client.named(name).request("GET", f"{BASE}/{instance}/proxy{path}")


async def timed(ask: Callable[[], Awaitable[Reply]], times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        began = time.monotonic()
        reply = await ask()
        assert reply.status == 200, reply.body
        seconds.append(time.monotonic() - began)
    return sorted(seconds)


@asynccontextmanager
async def meanwhile(asking: list[Awaitable[Reply]]) -> AsyncIterator[list[asyncio.Task[Reply]]]:
    tasks = [asyncio.ensure_future(each) for each in asking]
    await asyncio.sleep(0)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def status_of(reply: Reply) -> tuple[int, str, bool]:
    """As kubectl understands it: code, reason, and whether it says when to come back."""
    status = json.loads(reply.body)
    assert (status["kind"], status["code"]) == ("Status", reply.status)
    return reply.status, status["reason"], "Retry-After" in reply.headers


async def test_an_instance_that_does_not_answer_slows_no_other(entrance: Client, relay: Relay) -> None:
    await timed(lambda: get(entrance, "bob", "quiet"), 3)
    relay.hold()
    flood = [get(entrance, name, "quiet") for name in ("ann", "bob") for _ in range(24)]
    async with meanwhile(flood) as stuck:
        for name in ("ann", "bob"):  # the callers that wait for the silent instance too
            took = await timed(lambda name=name: get(entrance, name, "alive"), 40)  # type: ignore[misc]
            # A request that had to wait for one of those seats would have waited as long as the silence.
            assert took[-1] < SILENCE / 2, took[-5:]
        assert not any(task.done() and task.result().status == 200 for task in stuck)
        replies = await asyncio.gather(*stuck)
    outcomes = {status_of(reply) for reply in replies}
    assert outcomes <= {(504, "Timeout", True), (503, "ServiceUnavailable", True), (429, "TooManyRequests", True)}
    assert (504, "Timeout", True) in outcomes
    # The circuit is open now: requests fail at once, but for one every few seconds that probes the instance.

    async def fails_at_once() -> bool:
        began = time.monotonic()
        status = status_of(await get(entrance, "ann", "quiet"))
        assert status in {(503, "ServiceUnavailable", True), (504, "Timeout", True)}
        return status[0] == 503 and time.monotonic() - began < SILENCE / 2

    await eventually(fails_at_once, "a request that fails at once")
    await relay.heal()
    relay.reset()  # the requests that hang in the relay end

    async def served() -> bool:
        return (await get(entrance, "ann", "quiet")).status == 200

    await eventually(served, "the circuit being closed")
    await timed(lambda: get(entrance, "bob", "quiet"), 10)


async def test_a_storm_of_lists_delays_only_its_sender(entrance: Client, plane: EmbeddedPlane) -> None:
    namespace = f"storm-{uuid.uuid4().hex[:6]}"
    async with KubeClient(await plane.instance_connection()) as instance:
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        try:
            for number in range(40):
                body = {"metadata": {"name": f"large-{number}"}, "data": {"x": "y" * 50_000}}
                await instance.create(kinds.CONFIGMAPS, body, namespace=namespace)
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            alone = await timed(lambda: get(entrance, "bob", "alive"), 50)
            async with meanwhile([get(entrance, "ann", "alive", path) for _ in range(90)]) as storm:
                during = await timed(lambda: get(entrance, "bob", "alive"), 50)
                replies = await asyncio.gather(*storm)
        finally:
            await instance.delete(kinds.NAMESPACES, namespace)
    refused = [status_of(reply) for reply in replies if reply.status != 200]
    assert set(refused) == {(429, "TooManyRequests", True)}
    assert len(refused) >= 50  # four lists take all seats of one caller, and queues are bounded
    # The client that sends the storm runs in this process as well, and takes its share of the CPU.
    assert statistics.median(during) < max(0.5, 20 * statistics.median(alone)), (alone[-3:], during[-3:])
    assert during[-1] < max(SILENCE / 2, 20 * alone[-1]), during[-3:]
