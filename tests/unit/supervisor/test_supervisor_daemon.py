"""The supervisor as a separate process: how it starts, ends and restarts."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from support.waiting import PATIENCE, eventually

from kairship.supervisor import AlreadyRunning, NotRunning, ProcessSpec, StartFailed, State, SupervisorClient, daemon
from kairship.supervisor.os_process import identity
from kairship.supervisor.store import StoredSpec

MakeSpec = Callable[..., ProcessSpec]
Start = Callable[[Path], Awaitable[SupervisorClient]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts supervisors. It stops them after the test, before their folders, by which they are found, are removed."""
    started: list[Path] = []
    assert tmp_path.exists()

    async def start(data_dir: Path) -> SupervisorClient:
        started.append(data_dir)
        return await daemon.start(data_dir, timeout=PATIENCE)

    yield start
    for data_dir in started:
        await daemon.stop(data_dir, timeout=60)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE  # dead, but not reaped by its new parent yet
    except psutil.NoSuchProcess:
        return True


async def running(client: SupervisorClient) -> list[int]:
    return [status.pid for status in await client.status() if status.pid]


async def kill(client: SupervisorClient) -> None:
    pid = (await client.health()).pid
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(os.waitpid, pid, 0)


async def test_children_die_with_a_killed_supervisor_and_come_back_with_the_next(
    start: Start, data_dir: Path, server_spec: MakeSpec, shell_spec: MakeSpec
) -> None:
    client = await start(data_dir)
    await client.put(
        server_spec("g/etcd"), server_spec("g/apiserver", after=("g/etcd",)), shell_spec("h/a", "sleep 999")
    )
    await client.wait_ready("g", "h", timeout=60)
    await client.stop("h/a")
    children = await running(client)
    assert len(children) == 2

    await kill(client)

    await eventually(lambda: all(map(is_gone, children)), "the end of the children")
    assert not daemon.is_running(data_dir)
    with pytest.raises(NotRunning):
        await client.status()

    await start(data_dir)
    await client.wait_ready("g", timeout=60)
    assert {status.name: status.state for status in await client.status()} == {
        "g/apiserver": State.READY,
        "g/etcd": State.READY,
        "h/a": State.STOPPED,
    }


async def test_stop_takes_everything_down_and_start_brings_it_back(
    start: Start, data_dir: Path, server_spec: MakeSpec
) -> None:
    client = await start(data_dir)
    await client.put(server_spec("g/a"))
    await client.wait_ready("g", timeout=60)
    children = await running(client)

    await daemon.stop(data_dir)
    await daemon.stop(data_dir)

    assert not daemon.is_running(data_dir)
    assert not (data_dir / "supervisor/control.sock").exists()
    assert all(map(is_gone, children))
    await start(data_dir)
    await client.wait_ready("g", timeout=60)


async def test_a_supervisor_that_hangs_is_killed_at_the_deadline(
    start: Start, data_dir: Path, server_spec: MakeSpec
) -> None:
    client = await start(data_dir)
    await client.put(server_spec("g/a"))
    await client.wait_ready("g", timeout=60)
    [child] = await running(client)
    os.kill((await client.health()).pid, signal.SIGSTOP)

    async with asyncio.timeout(60):
        await daemon.stop(data_dir, timeout=0.2)

    assert not daemon.is_running(data_dir)

    await eventually(lambda: is_gone(child), "the end of the child")


async def test_a_data_directory_has_one_supervisor(start: Start, data_dir: Path) -> None:
    client = await start(data_dir)
    pid = (await client.health()).pid

    with pytest.raises(AlreadyRunning) as refusal:
        await daemon.start(data_dir)
    assert refusal.value.pid == pid

    command = [sys.executable, "-m", "kairship.supervisor", "--data-dir", str(data_dir)]
    second = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert second.returncode == 1
    assert f"already owns this data directory (pid {pid})" in second.stderr
    assert (await client.health()).pid == pid


async def test_two_data_directories_do_not_know_each_other(start: Start, tmp_path: Path, server_spec: MakeSpec) -> None:
    one, two = await start(tmp_path / "one"), await start(tmp_path / "two")
    await one.put(server_spec("g/a"))
    await two.put(server_spec("g/b"))
    await one.wait_ready("g", timeout=60)
    await two.wait_ready("g", timeout=60)
    first, second = await one.allocate_ports("g", ["x"]), await two.allocate_ports("g", ["x"])
    assert first != second

    await daemon.stop(tmp_path / "one")

    assert [status.state for status in await two.status()] == [State.READY]


async def test_a_damaged_specification_is_set_aside(start: Start, data_dir: Path, server_spec: MakeSpec) -> None:
    processes = data_dir / "supervisor/processes"
    processes.mkdir(parents=True)
    (processes / "g@a.json").write_bytes(b"{\xff")
    (processes / "g@b.json").write_text('{"spec": {"name": "../b", "argv": ["true"], "cwd": "/"}}')
    (processes / "g@c.json").write_bytes(msgspec.json.encode(StoredSpec(spec=server_spec("g/c"))))

    client = await start(data_dir)

    await client.wait_ready("g", timeout=60)
    assert [status.name for status in await client.status()] == ["g/c"]
    assert {path.name for path in processes.iterdir()} == {"g@a.json.corrupt", "g@b.json.corrupt", "g@c.json"}
    log = [json.loads(line) for line in (data_dir / "logs/supervisor.log").read_text().splitlines()]
    assert sum(entry["event"] == "specification set aside" for entry in log) == 2


async def test_a_start_that_fails_shows_why(data_dir: Path) -> None:
    (data_dir / "supervisor").mkdir(parents=True)
    (data_dir / "supervisor/ports.json").write_text("garbage")
    with pytest.raises(StartFailed, match=r"ports\.json is damaged"):
        await daemon.start(data_dir)
    assert not daemon.is_running(data_dir)


@pytest.fixture
def two_sleepers() -> Iterator[tuple["subprocess.Popen[bytes]", "subprocess.Popen[bytes]"]]:
    with (
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as one,
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as two,
    ):
        yield one, two
        one.kill()
        two.kill()


async def test_a_process_left_by_an_earlier_supervisor_is_ended(
    start: Start, data_dir: Path, two_sleepers: tuple["subprocess.Popen[bytes]", "subprocess.Popen[bytes]"]
) -> None:
    left, stranger = two_sleepers
    (data_dir / "supervisor").mkdir(parents=True)
    (data_dir / "supervisor/running.json").write_text(
        json.dumps(
            {
                "g/a": {"pid": left.pid, "identity": identity(left.pid)},
                "g/b": {"pid": stranger.pid, "identity": "an earlier owner of that pid"},
                "g/c": {"pid": 2**22 - 1, "identity": "nobody"},
            }
        )
    )
    await start(data_dir)
    assert left.poll() == -signal.SIGKILL
    assert stranger.poll() is None
