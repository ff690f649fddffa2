"""An act is on the disk before it is done, and arrives once, whichever process dies in between."""

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
from support.not_yet import NotYet
from support.waiting import eventually

from kairship.apiserver.audit import Shipper, Spool, SpooledAudit, SpoolError, shipping, spool
from kairship.apiserver.audit.recorder import is_audited
from kairship.apiserver.auth.authentication import SessionEnded
from kairship.gen.kairship.internal.v1.audit_pb import AppendRequest, Event
from kairship.process.slow_disk import SlowDisk
from kairship.rpc.backend_channel import BackendChannel
from kairship.rpc.calls import Call, Envelope
from kairship.rpc.errors import NotFound, PermissionDenied, Unauthenticated, Unavailable

DELETE, GET = METHODS["Instance.DeleteInstance"], METHODS["Instance.GetInstance"]
REQUEST = DELETE.request(name="east")


class Trail:
    """Stands in for global management, and takes events."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.calls = 0
        self.down = False

    async def internal_unary(self, method: object, request: AppendRequest, *, timeout: float) -> None:
        self.calls += 1
        if self.down:
            raise Unavailable("not now")
        self.events |= {event.id: event for event in request.events}

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        return [(event.request_id, event.outcome) for event in self.events.values()]

    async def until(self, *expected: tuple[str, int]) -> None:
        def equal() -> NotYet | bool:
            return sorted(self.outcomes) == sorted(expected) or NotYet(self.outcomes)

        await eventually(equal, f"the outcomes {expected}")


class Worker:
    def __init__(self, directory: Path, trail: Trail) -> None:
        self.spool = Spool(directory)
        self.audit = SpooledAudit(self.spool)
        self.shipper = Shipper(self.spool, cast("BackendChannel", trail))

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
            os.close(worker.spool._lock)  # the operating system does this for a killed process


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
        await eventually(lambda: not worker.segments(), "the end of the segments")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"]


async def test_the_intent_is_on_the_disk_before_the_act(tmp_path: Path, trail: Trail) -> None:
    trail.down = True
    async with working(tmp_path, trail, ends="killed") as worker:
        await worker.audit.before(call("r-1"), REQUEST)
        content = b"".join(path.read_bytes() for path in worker.spool.folder.iterdir())
        assert b'"r-1"' in content


async def test_the_act_of_a_killed_worker_is_shipped_by_another(tmp_path: Path, trail: Trail) -> None:
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
        await eventually(lambda: not segment.exists(), "the end of the segment")


async def test_the_folder_of_a_living_worker_is_not_adopted(tmp_path: Path, trail: Trail) -> None:
    async with working(tmp_path, trail) as busy, working(tmp_path, trail):
        begun = call("r-1")
        await busy.audit.before(begun, REQUEST)
        await asyncio.sleep(0.2)  # the other worker looks for orphans several times meanwhile
        assert not trail.events
        await busy.audit.after(begun, REQUEST, None)
        await trail.until(("r-1", 0))


async def test_nothing_is_lost_while_global_management_is_down(
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
        # The segments are removed after global management has everything, but for that of the act that goes on.
        await eventually(lambda: worker.segments() == ["000001"], "the end of the other segments")
        await worker.audit.after(long, REQUEST, None)
        await trail.until(("long", 0), *((f"r-{number:02}", 0) for number in range(20)))


async def test_many_writers_cost_few_flushes(tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_an_act_that_cannot_be_recorded_is_refused(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    async with working(tmp_path, trail) as worker:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", full)
            with pytest.raises(Unavailable) as refusal:
                await worker.audit.before(call("r-1"), REQUEST)
            assert refusal.value.retry_after
            with pytest.raises(SpoolError):
                await worker.spool.write(b"x\n")
        again = call("r-2")
        await worker.audit.before(again, REQUEST)
        await worker.audit.after(again, REQUEST, None)
        await eventually(lambda: ("r-2", 0) in trail.outcomes, "the second event")


class HeldDisk:
    """A slow disk: flushes wait until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._released = threading.Event()
        flush = os.fdatasync

        def held(descriptor: int) -> None:
            assert self._released.wait(60)
            flush(descriptor)

        monkeypatch.setattr(os, "fdatasync", held)

    def release(self) -> None:
        self._released.set()


async def test_a_begun_act_survives_the_process_at_once_and_a_power_failure_later(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "SHIP_EVERY", 60.0)
    async with working(tmp_path, trail) as worker:
        await worker.spool.write(b"first\n")
        disk = HeldDisk(monkeypatch)
        stored = [await worker.spool.begin(f"{number}\n".encode()) for number in range(3)]
        assert _content(worker) == b"first\n0\n1\n2\n"
        assert not any(each.done() for each in stored)
        disk.release()
        async with asyncio.timeout(60):
            await asyncio.gather(*stored)


async def test_after_an_error_begin_waits_for_the_disk(
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


async def test_a_slow_disk_does_not_block_the_event_loop(
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
        await eventually(lambda: b"patient" in _content(worker), "the line in the file")
        assert not beginning.done()
        disk.release()
        async with asyncio.timeout(60):
            await (await beginning)


def _content(worker: Worker) -> bytes:
    return b"".join((worker.spool.folder / name).read_bytes() for name in worker.segments())


async def test_refused_attempts_are_recorded(tmp_path: Path, trail: Trail) -> None:
    shown = Envelope.around({"authorization": "Bearer x", "x-request-id": "bad-token"}, "192.0.2.1")
    nothing = Envelope.around({"x-request-id": "no-token"}, "192.0.2.1")
    async with working(tmp_path, trail) as worker:
        worker.audit.refused(GET, shown, None, None, Unauthenticated("no"))
        worker.audit.refused(GET, nothing, None, None, Unauthenticated("no"))
        worker.audit.refused(GET, shown, None, None, SessionEnded("it has expired"))
        worker.audit.refused(GET, shown, call("forbidden", GET), REQUEST, PermissionDenied("no"))
        worker.audit.refused(GET, shown, call("down", GET), None, Unavailable("no"))
        await trail.until(("bad-token", 16), ("forbidden", 7))
        [forbidden] = [event for event in trail.events.values() if event.outcome == 7]
        assert (forbidden.user_id, forbidden.object) == ("admin", "east")


@pytest.mark.parametrize(
    ("operation", "audited"),
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
def test_which_calls_are_audited(operation: str, audited: bool) -> None:
    assert is_audited(METHODS[operation]) is audited
