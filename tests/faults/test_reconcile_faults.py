"""A controller and an elector at a real API server while calls get lost, come twice, fail or kill the process.

Whatever happens, the end is the same: every original has its copy, and nothing of a deleted one is left.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
from faults import mirror_controller
from faults.mirror_controller import FINALIZER, Original, mirror
from support.random_faults import RandomFaults
from support.reconcile import Journal
from support.relay import relay_to
from support.waiting import PATIENCE, eventually
from yarl import URL

from kairship.kube import Client, Connection, Object, kinds
from kairship.reconcile import (
    Change,
    Elector,
    InterceptedClient,
    LeaderTerm,
    LeaseName,
    LeaseTiming,
    Metrics,
    Reflector,
    Selection,
    SystemClock,
)


class Kube(Protocol):
    @property
    def connection(self) -> Connection: ...


class Observer:
    """Sees all ConfigMaps of the test without injected faults."""

    def __init__(self, reflector: Reflector[Original]) -> None:
        self._reflector = reflector
        self._changes = Journal[Change[Original]]()
        reflector.subscribe(self._changes.note)

    def content(self) -> dict[str, dict[str, str]]:
        return {each.metadata.name: each.data for each in self._reflector.store}

    async def until_mirrored(self, originals: dict[str, dict[str, str]], *, timeout: float = PATIENCE) -> None:
        expected = {**originals, **{f"{name}-copy": data for name, data in originals.items()}}
        await self._changes.until(lambda _: self.content() == expected, timeout=timeout)

    async def until_gone(self, name: str) -> None:
        await self._changes.until(lambda _: name not in self.content(), timeout=PATIENCE)


@asynccontextmanager
async def observing(client: Client, namespace: str) -> AsyncIterator[Observer]:
    selection = Selection(kinds.CONFIGMAPS, Original, namespace=namespace, label_selector="role")
    reflector = Reflector(client, selection, clock=SystemClock(), metrics=Metrics())
    observer = Observer(reflector)
    async with in_background(reflector.run()):
        await asyncio.wait_for(reflector.wait_synced(), PATIENCE)
        yield observer


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def write(client: Client, namespace: str, name: str, **data: str) -> None:
    body = {"metadata": {"name": name, "labels": {"role": "original"}}, "data": data}
    await client.apply(kinds.CONFIGMAPS, body, namespace=namespace, field_manager="somebody")


async def third_event(client: Client, namespace: str) -> Object:
    """The event of a copy that was made three times."""
    watch = client.watch(kinds.EVENTS, namespace=namespace)
    async with asyncio.timeout(PATIENCE), aclosing(watch) as events:
        async for event in events:
            if event.object.get("count") == 3:
                return event.object
    raise AssertionError("the watch has ended")


async def test_undisturbed_with_one_owner_of_fields_and_an_event(kube: Kube, namespace: str) -> None:
    async with Client(kube.connection) as client, observing(client, namespace) as observer:
        await write(client, namespace, "a", text="1")
        async with in_background(mirror(client, namespace, clock=SystemClock(), metrics=Metrics()).run()):
            await observer.until_mirrored({"a": {"text": "1"}})
            await write(client, namespace, "a", text="2")
            await observer.until_mirrored({"a": {"text": "2"}})
            await client.delete(kinds.CONFIGMAPS, "a-copy", namespace=namespace)
            await observer.until_gone("a-copy")
            await observer.until_mirrored({"a": {"text": "2"}})
            copy = await client.get(kinds.CONFIGMAPS, "a-copy", namespace=namespace)
            (entry,) = copy["metadata"]["managedFields"]
            assert (entry["manager"], entry["operation"]) == ("kairship-mirror", "Apply")

            recorded = await third_event(client, namespace)
            assert recorded["involvedObject"]["name"] == "a"
            assert recorded["message"] == "a-copy is up to date"
            assert recorded["source"]["component"] == "kairship-mirror"
            assert (recorded["type"], recorded["reason"], recorded["count"]) == ("Normal", "Copied", 3)
            assert len((await client.list(kinds.EVENTS, namespace=namespace)).items) == 1

            await client.delete(kinds.CONFIGMAPS, "a", namespace=namespace)
            await observer.until_mirrored({})


async def test_calls_that_get_lost_come_twice_come_late_or_fail(kube: Kube, namespace: str) -> None:
    faults, metrics = RandomFaults(seed=7), Metrics()
    async with (
        Client(kube.connection) as client,
        InterceptedClient(kube.connection, interceptors=[faults]) as unlucky,
        observing(client, namespace) as observer,
        in_background(mirror(unlucky, namespace, clock=SystemClock(), metrics=metrics).run()),
    ):
        wanted: dict[str, dict[str, str]] = {}
        for number in range(8):
            wanted[f"o{number}"] = {"text": "first"}
            await write(client, namespace, f"o{number}", text="first")
        await observer.until_mirrored(wanted)
        for number in range(4):
            wanted[f"o{number}"] = {"text": "second"}
            await write(client, namespace, f"o{number}", text="second")
        for number in range(2, 6):
            del wanted[f"o{number}"]
            await client.delete(kinds.CONFIGMAPS, f"o{number}", namespace=namespace)
        await observer.until_mirrored(wanted)
        assert set(faults.injected) >= set(RandomFaults.COMMON)
        assert sum(faults.injected.values()) > 15


async def run_until_killed(kubeconfig: Path, namespace: str, *, at: int, after: bool) -> None:
    options = [f"--die-at={at}", *(["--after"] if after else [])]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, mirror_controller.__file__, str(kubeconfig), namespace, *options),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # it imports `support` as pytest does
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert await asyncio.wait_for(process.wait(), PATIENCE) == -signal.SIGKILL
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_killed_at_each_of_its_changes(kube: Kube, namespace: str, tmp_path: Path) -> None:
    """The process is killed before each call and after it; the next process continues from there."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_bytes(kube.connection.to_kubeconfig(name="global", user="test"))

    async def finalizers(client: Client) -> list[str]:
        original = await client.get(kinds.CONFIGMAPS, "a", namespace=namespace)
        found: list[str] = original["metadata"].get("finalizers", [])
        return found

    async with Client(kube.connection) as client, observing(client, namespace) as observer:
        await write(client, namespace, "a", text="1")
        await run_until_killed(kubeconfig, namespace, at=1, after=False)
        assert await finalizers(client) == []
        await run_until_killed(kubeconfig, namespace, at=1, after=True)
        assert await finalizers(client) == [FINALIZER]
        await run_until_killed(kubeconfig, namespace, at=1, after=False)
        await run_until_killed(kubeconfig, namespace, at=1, after=True)
        await observer.until_mirrored({"a": {"text": "1"}})

        await client.delete(kinds.CONFIGMAPS, "a", namespace=namespace)
        await run_until_killed(kubeconfig, namespace, at=1, after=False)
        await observer.until_mirrored({"a": {"text": "1"}})
        await run_until_killed(kubeconfig, namespace, at=1, after=True)
        await observer.until_gone("a-copy")
        assert await finalizers(client) == [FINALIZER]  # removed last
        await run_until_killed(kubeconfig, namespace, at=2, after=False)
        assert await finalizers(client) == [FINALIZER]
        await run_until_killed(kubeconfig, namespace, at=2, after=True)
        await observer.until_mirrored({})


# A multiple of the default times: the limits are those of the elector, and not those of a busy machine.
TIMING = LeaseTiming(duration=18, renew_deadline=10.0, attempt=2.5)
INTERRUPTED = 6.0
"""Seconds that are left of a term after an interruption of two renewals."""


async def renewed(term: LeaderTerm) -> None:
    """Waits until the next renewal of the lease."""
    seen = [term.remaining()]

    def grows() -> bool:
        seen.append(term.remaining())
        return seen[-1] > seen[-2]

    await eventually(grows, "the next renewal of the lease")


async def test_a_leader_cut_off_from_the_server_stops_in_time(kube: Kube, namespace: str) -> None:
    """A short interruption costs nothing; a long one ends the term before another candidate may begin one."""
    url = URL(kube.connection.server)
    assert url.host is not None
    assert url.port is not None
    clock, said = SystemClock(), Journal[tuple[str, float]]()
    terms: list[LeaderTerm] = []

    async def lead(term: LeaderTerm) -> None:
        terms.append(term)
        said.note(("leads", clock.now()))
        try:
            await asyncio.Event().wait()
        finally:
            said.note(("stopped", clock.now()))

    async with relay_to(url.host, url.port) as relay:
        connection = msgspec.structs.replace(
            kube.connection, server=f"https://{relay.address}", tls_server_name=url.host
        )
        elector = Elector(connection, LeaseName(namespace, "cut"), metrics=Metrics(), timing=TIMING)
        async with in_background(elector.run(lead)):
            await said.until(lambda entries: len(entries) == 1, timeout=PATIENCE)
            relay.hold()
            await eventually(lambda: terms[0].remaining() < INTERRUPTED, "an interruption of some length")
            await relay.heal()
            await renewed(terms[0])
            cut_at, left = clock.now(), terms[0].remaining()
            relay.refuse()
            relay.reset()
            await said.until(lambda entries: len(entries) == 2, timeout=PATIENCE)
            word, at = said.entries[1]
            assert word == "stopped"
            assert left - 0.1 < at - cut_at < left + TIMING.duration - TIMING.renew_deadline
            assert not terms[0].valid
            await relay.heal()
            await said.until(lambda entries: len(entries) == 3, timeout=PATIENCE)
            assert terms[1].number > terms[0].number
