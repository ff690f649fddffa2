"""What people do is on the disk before it is done, and arrives once, whoever dies in between."""

import asyncio
import itertools
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from support.entrance import ADMIN, METHODS

from kairship.apiserver.audit import Shipper, Spool, SpooledAudit, SpoolError, shipping, spool
from kairship.apiserver.audit.auditing import is_remembered
from kairship.apiserver.authentication import SessionOver
from kairship.gen.kairship.internal.v1.audit_pb import AppendRequest, Event
from kairship.process.slow_disk import SlowDisk
from kairship.rpc.calls import Call, Envelope
from kairship.rpc.errors import NotFound, PermissionDenied, Unauthenticated, Unavailable
from kairship.rpc.role_channel import RoleChannel

DELETE, GET = METHODS["Instance.DeleteInstance"], METHODS["Instance.GetInstance"]
REQUEST = DELETE.request(name="east")


class Trail:
    """Global management, as far as it takes events."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.calls = 0
        self.down = False

    async def own(self, method: object, request: AppendRequest, *, timeout: float) -> None:
        self.calls += 1
        if self.down:
            raise Unavailable("not now")
        self.events |= {event.id: event for event in request.events}

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        return [(event.request_id, event.outcome) for event in self.events.values()]

    async def until(self, *expected: tuple[str, int]) -> None:
        async with asyncio.timeout(60):
            while sorted(self.outcomes) != sorted(expected):  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.01)


class Worker:
    def __init__(self, directory: Path, trail: Trail) -> None:
        self.spool = Spool(directory)
        self.audit = SpooledAudit(self.spool)
        self.shipper = Shipper(self.spool, cast("RoleChannel", trail))

    def segments(self) -> list[str]:
        return sorted(path.name for path in self.spool.folder.iterdir() if path.name != "lock")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "SHIP_EVERY", 0.01)
    monkeypatch.setattr(shipping, "LOOK_FOR_ORPHANS_EVERY", 0.05)


@pytest.fixture
def trail() -> Trail:
    return Trail()


@asynccontextmanager
async def working(directory: Path, trail: Trail, *, ends: str = "well") -> AsyncIterator[Worker]:
    worker = Worker(directory, trail)
    running = asyncio.create_task(worker.shipper.run())
    try:
        yield worker
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if ends == "well":
            await worker.shipper.finish()
        else:
            os.close(worker.spool._lock)  # what the system does for a process that was killed


def call(request_id: str, method: Any = DELETE) -> Call:
    return Call(request_id=request_id, caller=ADMIN, method=method, deadline=0.0, origin="192.0.2.1")


async def test_an_act_arrives_with_its_outcome(tmp_path: Path, trail: Trail) -> None:
    async with working(tmp_path, trail) as worker:
        done, failed = call("r-1"), call("r-2")
        await worker.audit.before(done, REQUEST)
        await worker.audit.before(failed, REQUEST)
        await worker.audit.after(done, REQUEST, None)
        await worker.audit.after(failed, REQUEST, NotFound("there is none"))
        await trail.until(("r-1", 0), ("r-2", 5))
        event = next(iter(trail.events.values()))
        assert (event.user_id, event.action, event.object, event.address, event.message) == (
            "admin",
            "kairship.instances.delete",
            "east",
            "192.0.2.1",
            "Instance.DeleteInstance",
        )
        async with asyncio.timeout(60):
            while worker.segments():  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.01)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"]


async def test_the_intent_is_on_the_disk_before_the_act(tmp_path: Path, trail: Trail) -> None:
    trail.down = True
    async with working(tmp_path, trail, ends="killed") as worker:
        await worker.audit.before(call("r-1"), REQUEST)
        content = b"".join(path.read_bytes() for path in worker.spool.folder.iterdir())
        assert b'"r-1"' in content


async def test_who_is_killed_in_the_act_leaves_it_to_others(tmp_path: Path, trail: Trail) -> None:
    trail.down = True
    async with working(tmp_path, trail, ends="killed") as worker:
        done, begun = call("done"), call("begun")
        await worker.audit.before(done, REQUEST)
        await worker.audit.after(done, REQUEST, None)
        await worker.audit.before(begun, REQUEST)
        await worker.spool.flush()
        segment = max(path for path in worker.spool.folder.iterdir() if path.name != "lock")
    with segment.open("ab") as file:
        file.write(b'{"type":"intent","id":"torn')
    trail.down = False
    async with working(tmp_path, trail):
        await trail.until(("done", 0), ("begun", 2))
        async with asyncio.timeout(60):
            while segment.exists():  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.01)


async def test_what_a_living_worker_has_is_its_own(tmp_path: Path, trail: Trail) -> None:
    async with working(tmp_path, trail) as busy, working(tmp_path, trail):
        begun = call("r-1")
        await busy.audit.before(begun, REQUEST)
        await asyncio.sleep(0.2)  # in which the other looks for orphans several times
        assert not trail.events
        await busy.audit.after(begun, REQUEST, None)
        await trail.until(("r-1", 0))


async def test_nothing_is_lost_while_nobody_takes_it(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "LARGEST_SEGMENT", 1000)
    trail.down = True
    async with working(tmp_path, trail) as worker:
        long = call("long")
        await worker.audit.before(long, REQUEST)
        for number in range(20):
            each = call(f"r-{number:02}")
            await worker.audit.before(each, REQUEST)
            await worker.audit.after(each, REQUEST, None)
        assert len(worker.segments()) > 3
        trail.down = False
        await trail.until(*((f"r-{number:02}", 0) for number in range(20)))
        assert worker.segments() == ["000001"]  # where the one that goes on began
        await worker.audit.after(long, REQUEST, None)
        await trail.until(("long", 0), *((f"r-{number:02}", 0) for number in range(20)))


async def test_many_at_once_cost_few_flushes(tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes = 0
    flush = os.fdatasync

    def counted(descriptor: int) -> None:
        nonlocal flushes
        flushes += 1
        flush(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)
    async with working(tmp_path, trail) as worker:
        await asyncio.gather(*(worker.audit.before(call(f"r-{number}"), REQUEST) for number in range(200)))
    assert flushes < 20


async def test_what_cannot_be_written_is_not_done(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    async with working(tmp_path, trail) as worker:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", full)
            with pytest.raises(Unavailable) as said:
                await worker.audit.before(call("r-1"), REQUEST)
            assert said.value.retry_after
            with pytest.raises(SpoolError):
                await worker.spool.write(b"x\n")
        again = call("r-2")
        await worker.audit.before(again, REQUEST)
        await worker.audit.after(again, REQUEST, None)
        async with asyncio.timeout(60):
            while ("r-2", 0) not in trail.outcomes:  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.01)


class HeldDisk:
    """A disk that takes its time: flushes wait until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._go = threading.Event()
        flush = os.fdatasync

        def held(descriptor: int) -> None:
            assert self._go.wait(60)
            flush(descriptor)

        monkeypatch.setattr(os, "fdatasync", held)

    def let_go(self) -> None:
        self._go.set()


async def test_what_is_begun_outlives_the_process_at_once_and_power_later(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "SHIP_EVERY", 60.0)
    async with working(tmp_path, trail) as worker:
        await worker.spool.write(b"first\n")
        disk = HeldDisk(monkeypatch)
        stored = [await worker.spool.begin(f"{number}\n".encode()) for number in range(3)]
        assert _content(worker) == b"first\n0\n1\n2\n"
        assert not any(each.done() for each in stored)
        disk.let_go()
        async with asyncio.timeout(60):
            await asyncio.gather(*stored)


async def test_after_an_error_nothing_is_begun_before_it_is_on_the_disk(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    async with working(tmp_path, trail) as worker:
        await worker.spool.write(b"first\n")
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", broken)
            with pytest.raises(SpoolError):
                await (await worker.spool.begin(b"in the act\n"))
            with pytest.raises(SpoolError):
                await worker.spool.begin(b"not begun\n")
        await (await worker.spool.begin(b"again\n"))


async def test_a_slow_disk_is_waited_for_beside_the_event_loop(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "SHIP_EVERY", 60.0)
    async with working(tmp_path, trail) as worker:
        await worker.spool.write(b"first\n")
        slow = SlowDisk(partial(next, itertools.count()), closely=True, clock=partial(next, itertools.count(1.0, 0.01)))
        monkeypatch.setattr(worker.spool, "_disk", slow)
        await (await worker.spool.begin(b"slow\n"))
        disk = HeldDisk(monkeypatch)
        beginning = asyncio.create_task(worker.spool.begin(b"patient\n"))
        async with asyncio.timeout(60):
            while b"patient" not in _content(worker):  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.01)
        assert not beginning.done()
        disk.let_go()
        async with asyncio.timeout(60):
            await (await beginning)


def _content(worker: Worker) -> bytes:
    return b"".join((worker.spool.folder / name).read_bytes() for name in worker.segments())


async def test_attempts_that_were_refused(tmp_path: Path, trail: Trail) -> None:
    shown = Envelope.around({"authorization": "Bearer x", "x-request-id": "bad-token"}, "192.0.2.1")
    nothing = Envelope.around({"x-request-id": "no-token"}, "192.0.2.1")
    async with working(tmp_path, trail) as worker:
        worker.audit.refused(GET, shown, None, None, Unauthenticated("no"))
        worker.audit.refused(GET, nothing, None, None, Unauthenticated("no"))
        worker.audit.refused(GET, shown, None, None, SessionOver("it had its time"))
        worker.audit.refused(GET, shown, call("forbidden", GET), REQUEST, PermissionDenied("no"))
        worker.audit.refused(GET, shown, call("down", GET), None, Unavailable("no"))
        await trail.until(("bad-token", 16), ("forbidden", 7))
        [forbidden] = [event for event in trail.events.values() if event.outcome == 7]
        assert (forbidden.user_id, forbidden.object) == ("admin", "east")


@pytest.mark.parametrize(
    ("operation", "remembered"),
    [
        ("Instance.GetInstance", False),
        ("Instance.CreateInstance", True),
        ("Instance.CreateInstanceAdminKubeConfig", True),
        ("Core.GetSecret", True),
        ("Core.ListSecrets", False),
        ("Sessions.Login", False),
        ("CurrentUser.ChangePassword", True),
    ],
)
def test_what_is_remembered(operation: str, remembered: bool) -> None:
    assert is_remembered(METHODS[operation]) is remembered
