"""The supervisor's guarantees about processes, one test for each."""

import asyncio
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import structlog
from msgspec.structs import replace
from support.waiting import eventually

from kairship.supervisor import (
    HttpProbe,
    InvalidSpec,
    NotReady,
    NotRunning,
    ProcessSpec,
    ProcessStatus,
    ShuttingDown,
    State,
    SupervisorClient,
    TcpProbe,
    UnknownProcess,
    child,
    probe,
)

MakeSpec = Callable[..., ProcessSpec]


@pytest.fixture
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "FIRST_BACKOFF", 0.05)


def is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE  # it is dead, but its new parent has not reaped it yet
    except psutil.NoSuchProcess:
        return True


async def of(client: SupervisorClient, name: str) -> ProcessStatus:
    [status] = await client.status(name)
    return status


async def family_of(client: SupervisorClient, name: str) -> list[psutil.Process]:
    """A process and its child. A process without a probe counts as ready whether it has started its child or not."""
    leader = psutil.Process((await of(client, name)).pid)
    await eventually(leader.children, "the child of the process")
    return [leader, *leader.children(recursive=True)]


async def pids(client: SupervisorClient) -> dict[str, int | None]:
    return {status.name: status.pid for status in await client.status()}


async def test_the_same_put_again_changes_nothing(client: SupervisorClient, server_spec: MakeSpec) -> None:
    spec = server_spec("g/a")
    assert await client.put(spec) == ["g/a"]
    await client.wait_ready("g/a", timeout=60)
    before = await of(client, "g/a")

    assert await client.put(spec) == []

    await client.wait_ready("g/a", timeout=60)
    assert await of(client, "g/a") == before


async def test_a_changed_specification_restarts_that_process_only(
    client: SupervisorClient, server_spec: MakeSpec
) -> None:
    first, second = server_spec("g/a"), server_spec("g/b")
    await client.put(first, second)
    await client.wait_ready("g", timeout=60)
    before = await pids(client)

    assert await client.put(replace(first, env={"NEW": "1"}), second) == ["g/a"]

    await client.wait_ready("g", timeout=60)
    after = await pids(client)
    assert after["g/a"] != before["g/a"]
    assert after["g/b"] == before["g/b"]


async def test_a_put_after_a_file_has_changed_restarts_the_process(
    client: SupervisorClient, server_spec: MakeSpec, tmp_path: Path
) -> None:
    certificate = tmp_path / "tls.crt"
    certificate.write_text("old")
    spec = server_spec("g/a", files=(str(certificate),))
    await client.put(spec)
    await client.wait_ready("g/a", timeout=60)
    before = await pids(client)

    certificate.write_text("new")

    assert await client.put(spec) == ["g/a"]
    await client.wait_ready("g/a", timeout=60)
    assert await pids(client) != before
    assert await client.put(spec) == []


async def test_a_process_starts_when_what_it_comes_after_is_ready(
    client: SupervisorClient, server_spec: MakeSpec, journal: Path, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    await client.put(server_spec("g/apiserver", after=("g/etcd",)), server_spec("g/etcd", flag=str(flag)))

    async def etcd_says_what_is_missing() -> bool:
        return "answered 503: [-]flag is missing" in (await of(client, "g/etcd")).reason

    await eventually(etcd_says_what_is_missing, "the reason of etcd")
    waiting = await of(client, "g/apiserver")
    assert waiting.state is State.WAITING
    assert waiting.reason.startswith("waits for g/etcd (starting: http://127.0.0.1:")
    assert journal.read_text().split() == ["+g/etcd"]

    flag.touch()
    await client.wait_ready("g", timeout=60)
    assert journal.read_text().split() == ["+g/etcd", "+g/apiserver"]


async def test_a_process_that_stops_answering_is_unready_and_may_recover(
    client: SupervisorClient,
    server_spec: MakeSpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child, "READY_CHECK", 0.05)
    monkeypatch.setattr(child, "SLOWEST_CHECK", 0.05)
    flag = tmp_path / "flag"
    flag.touch()
    await client.put(server_spec("g/a", flag=str(flag)))
    await client.wait_ready("g/a", timeout=60)
    pid = (await of(client, "g/a")).pid

    flag.unlink()

    async def is_unready() -> bool:
        status = await of(client, "g/a")
        return status.state is State.UNREADY and "flag is missing" in status.reason

    await eventually(is_unready, "the process being unready")
    flag.touch()
    await client.wait_ready("g/a", timeout=60)
    assert (await of(client, "g/a")).pid == pid


async def test_a_process_that_dies_is_started_again_and_the_reason_is_told(
    client: SupervisorClient, server_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "FIRST_BACKOFF", 3.0)  # long enough to be seen
    await client.put(server_spec("g/a"))
    await client.wait_ready("g/a", timeout=60)
    pid = (await of(client, "g/a")).pid
    assert pid is not None

    os.kill(pid, signal.SIGKILL)

    async def is_in_backoff() -> bool:
        status = await of(client, "g/a")
        return status.state is State.BACKOFF and status.reason.startswith("was killed by SIGKILL after ")

    await eventually(is_in_backoff, "the backoff and its reason")
    await client.wait_ready("g/a", timeout=60)
    again = await of(client, "g/a")
    assert again.pid != pid
    assert again.restarts == 1
    assert again.last_exit.startswith("was killed by SIGKILL after ")


async def test_backoff_grows_and_ends_when_the_specification_is_mended(
    client: SupervisorClient, shell_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(child, "LONGEST_BACKOFF", 0.05)
    broken = shell_spec("g/a", "echo bad flag >&2; exit 7")

    async def has_failed_often() -> bool:
        return (await of(client, "g/a")).restarts >= 5

    with structlog.testing.capture_logs() as entries:
        await client.put(broken)
        await eventually(has_failed_often, "five restarts")
    delays = [entry["retry_in"] for entry in entries if entry["event"] == "failed"]
    assert delays[:5] == [0.01, 0.02, 0.04, 0.05, 0.05]
    assert re.fullmatch(r"exited with code 7 after \d+\.\d s: bad flag", (await of(client, "g/a")).last_exit)

    await client.put(replace(broken, argv=("sleep", "1000")))
    await client.wait_ready("g/a", timeout=60)


@pytest.mark.usefixtures("quick_backoff")
async def test_waiting_ends_early_when_a_process_keeps_dying(
    client: SupervisorClient, shell_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "SETTLED", 60.0)  # on a busy machine a shell that ends at once may take a while
    await client.put(
        shell_spec("g/etcd", "echo the disk is gone; exit 1"),
        shell_spec("g/apiserver", "sleep 1000", after=("g/etcd",)),
    )
    with pytest.raises(NotReady) as failure:
        await client.wait_ready("g/apiserver", timeout=60)
    [unready] = failure.value.processes
    assert unready.name == "g/apiserver"
    assert unready.state is State.WAITING
    assert re.search(r"g/etcd \(backoff: exited with code 1 after \d+\.\d s: the disk is gone\)", unready.reason)
    assert unready.log.endswith("/logs/g/apiserver.log")


async def test_waiting_ends_at_the_deadline_and_names_the_culprits(
    client: SupervisorClient, server_spec: MakeSpec, tmp_path: Path
) -> None:
    await client.put(server_spec("g/a"), server_spec("g/b", flag=str(tmp_path / "never")))
    await client.wait_ready("g/a", timeout=60)

    async def answers() -> bool:
        return "flag is missing" in (await of(client, "g/b")).reason

    await eventually(answers, "an answer of the other process")
    with pytest.raises(NotReady, match=r"g/b \(starting\): .*flag is missing") as failure:
        await client.wait_ready("g", timeout=0.3)
    assert [process.name for process in failure.value.processes] == ["g/b"]


@pytest.mark.usefixtures("quick_backoff")
async def test_a_process_that_cannot_be_started_says_why(client: SupervisorClient, tmp_path: Path) -> None:
    await client.put(ProcessSpec(name="g/a", argv=("/no/such/binary",), cwd=str(tmp_path)))
    with pytest.raises(NotReady, match=r"cannot be started: .*/no/such/binary"):
        await client.wait_ready("g/a", timeout=60)


async def test_a_process_that_is_not_ready_in_time_is_started_anew(
    client: SupervisorClient, server_spec: MakeSpec, tmp_path: Path, journal: Path
) -> None:
    await client.put(server_spec("g/a", flag=str(tmp_path / "never"), ready_timeout=0.3))

    def was_started_twice() -> bool:
        return journal.exists() and journal.read_text().split().count("+g/a") >= 2

    await eventually(was_started_twice, "the second start")
    assert (await of(client, "g/a")).last_exit.startswith("not ready within 0.3 s: http://")


@pytest.mark.usefixtures("quick_backoff")
async def test_started_again_in_the_middle_of_an_attempt_it_has_as_many_as_at_first(
    client: SupervisorClient, server_spec: MakeSpec, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    await client.put(server_spec("g/a", flag=str(flag), ready_timeout=2.0))

    async def tries_after_too_many_failures() -> bool:
        now = await of(client, "g/a")
        return now.restarts >= child.HOPELESS and now.state is State.STARTING

    await eventually(tries_after_too_many_failures, "a start after too many failures")
    with pytest.raises(NotReady):
        await client.wait_ready("g/a", timeout=60)
    await eventually(tries_after_too_many_failures, "a start after too many failures")
    await client.start("g/a")
    async with asyncio.TaskGroup() as group:
        group.create_task(client.wait_ready("g/a", timeout=60))
        await asyncio.sleep(0)
        flag.touch()


async def test_stopped_stays_stopped_until_started(client: SupervisorClient, server_spec: MakeSpec) -> None:
    spec = server_spec("g/a")
    await client.put(spec)
    await client.wait_ready("g/a", timeout=60)
    pid = (await of(client, "g/a")).pid
    assert pid is not None

    await client.stop("g/a")
    assert not psutil.pid_exists(pid)
    assert (await of(client, "g/a")).state is State.STOPPED
    await client.put(spec)
    await client.put(replace(spec, env={"NEW": "1"}))
    with pytest.raises(NotReady, match=r"g/a \(stopped\): on request"):
        await client.wait_ready("g/a", timeout=60)

    await client.start("g/a")
    await client.wait_ready("g/a", timeout=60)


async def test_a_group_stops_in_reverse_order_and_restarts_in_order(
    client: SupervisorClient, server_spec: MakeSpec, journal: Path
) -> None:
    await client.put(
        server_spec("g/etcd"),
        server_spec("g/apiserver", after=("g/etcd",), linger=0.3),
        server_spec("g/scheduler", after=("g/apiserver",), linger=0.1),
        server_spec("other/etcd"),
    )
    await client.wait_ready("g", "other", timeout=60)
    journal.write_text("")

    await client.restart("g")
    await client.wait_ready("g", timeout=60)

    down = ["-g/scheduler", "-g/apiserver", "-g/etcd"]
    up = ["+g/etcd", "+g/apiserver", "+g/scheduler"]
    assert journal.read_text().split() == down + up


async def test_shutdown_stops_in_reverse_order(client: SupervisorClient, server_spec: MakeSpec, journal: Path) -> None:
    await client.put(
        server_spec("g/etcd"),
        server_spec("g/apiserver", after=("g/etcd",), linger=2.0),  # the supervisor answers until it has ended
        server_spec("h/etcd"),
        server_spec("h/apiserver", after=("h/etcd",), linger=0.2),
    )
    await client.wait_ready("g", "h", timeout=60)
    journal.write_text("")
    late = server_spec("g/late")

    await client.shutdown()
    with pytest.raises(ShuttingDown):
        await client.put(late)

    async def has_ended() -> bool:
        try:
            await client.health()
        except NotRunning:
            return True
        return False

    await eventually(has_ended, "the end of the supervisor")
    order = journal.read_text().split()
    assert [entry for entry in order if "g/" in entry] == ["-g/apiserver", "-g/etcd"]
    assert [entry for entry in order if "h/" in entry] == ["-h/apiserver", "-h/etcd"]


async def test_the_last_word_holds_when_calls_overlap(
    client: SupervisorClient, server_spec: MakeSpec, journal: Path
) -> None:
    specs = server_spec("g/etcd"), server_spec("g/apiserver", after=("g/etcd",), linger=0.2)
    await client.put(*specs)
    await client.wait_ready("g", timeout=60)

    async with asyncio.TaskGroup() as calls:
        calls.create_task(client.stop("g"))
        while (await of(client, "g/apiserver")).state is State.READY:  # noqa: ASYNC110 -- until the stop has arrived
            await asyncio.sleep(0)
        calls.create_task(client.start("g"))

    await client.wait_ready("g", timeout=60)

    async with asyncio.TaskGroup() as calls:
        calls.create_task(client.delete_group("g"))
        # Until the delete has arrived, or is done already.
        while any(each.state is State.READY for each in await client.status("g/apiserver")):  # noqa: ASYNC110
            await asyncio.sleep(0)
        with pytest.raises(UnknownProcess):
            await client.stop("g")
        assert await client.put(*specs) == ["g/etcd", "g/apiserver"]

    await client.wait_ready("g", timeout=60)
    await client.delete_group("g")
    assert await client.status() == []
    assert journal.read_text().split()[-2:] == ["-g/apiserver", "-g/etcd"]


async def test_a_process_that_ignores_sigterm_is_killed_with_its_descendants(
    client: SupervisorClient, shell_spec: MakeSpec
) -> None:
    await client.put(shell_spec("g/a", "trap '' TERM; sleep 1000 & wait; sleep 1000", stop_timeout=0.1))
    await client.wait_ready("g/a", timeout=60)
    family = await family_of(client, "g/a")
    assert len(family) == 2

    await client.stop("g/a")

    assert all(map(is_gone, family))


async def test_descendants_of_a_process_that_dies_are_gone_too(client: SupervisorClient, shell_spec: MakeSpec) -> None:
    await client.put(shell_spec("g/a", "sleep 1000 & wait"))
    await client.wait_ready("g/a", timeout=60)
    leader, descendant = await family_of(client, "g/a")

    leader.kill()

    await eventually(lambda: is_gone(descendant), "the end of the descendant")


async def test_deleted_processes_are_gone_and_forgotten(
    client: SupervisorClient, server_spec: MakeSpec, data_dir: Path
) -> None:
    await client.put(server_spec("g/a"), server_spec("g/b"), server_spec("h/a"))
    await client.wait_ready("g", "h", timeout=60)
    running = await pids(client)

    await client.delete("g/a")
    await client.delete("g/a")
    assert set(await pids(client)) == {"g/b", "h/a"}
    await client.delete_group("g")
    await client.delete_group("g")

    assert set(await pids(client)) == {"h/a"}
    assert [name for name, pid in running.items() if pid and psutil.pid_exists(pid)] == ["h/a"]
    assert [path.name for path in (data_dir / "supervisor/processes").iterdir()] == ["h@a.json"]


async def test_unknown_names_and_impossible_specifications_are_refused(
    client: SupervisorClient, shell_spec: MakeSpec
) -> None:
    for call in (client.stop, client.start, client.restart, client.logs):
        with pytest.raises(UnknownProcess, match="nobody"):
            await call("nobody")
    await client.delete("nobody")
    with pytest.raises(UnknownProcess):
        await client.wait_ready("g/nobody", timeout=1)
    for name in ("plain", "a/b/c", "../etc", "g/", "g/..", "g/a b"):
        with pytest.raises(InvalidSpec, match="process name"):
            await client.put(shell_spec(name, "exit"))
    for change in (
        {"argv": ()},
        {"argv": ("a\0b",)},
        {"env": {"A=B": "1"}},
        {"cwd": "relative"},
        {"files": ("relative",)},
        {"after": ("group",)},
        {"ports": (65536,)},
        {"probe": TcpProbe(port=0)},
        {"probe": HttpProbe(url="ftp://x")},
        {"stop_timeout": -1},
    ):
        with pytest.raises(InvalidSpec, match="g/a: "):
            await client.put(shell_spec("g/a", "exit", **change))
    with pytest.raises(InvalidSpec, match=r"wait for each other: .*g/a → g/b"):
        await client.put(shell_spec("g/a", "exit", after=("g/b",)), shell_spec("g/b", "exit", after=("g/a",)))
    assert await client.status() == []
