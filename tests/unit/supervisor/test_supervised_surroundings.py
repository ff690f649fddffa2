"""The environment of a process, its usage, and its log."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.waiting import eventually

from kairship.supervisor import ProcessSpec, SupervisorClient, supervisor

MakeSpec = Callable[..., ProcessSpec]


@pytest.fixture
def frequent_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "HOUSEKEEPING", 0.05)


async def test_children_inherit_next_to_nothing(
    client: SupervisorClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    out = tmp_path / "env.json"
    script = (
        f"import os, json, time; json.dump(dict(os.environ), open({f'{out}.new'!r}, 'w'));"
        f"os.rename({f'{out}.new'!r}, {str(out)!r}); time.sleep(1000)"
    )
    await client.put(ProcessSpec(name="g/a", argv=(sys.executable, "-I", "-c", script), cwd="/", env={"GIVEN": "1"}))
    await eventually(out.exists, "what the process has written")
    seen = json.loads(out.read_text())
    assert seen["GIVEN"] == "1"
    assert seen.keys() - {"LC_CTYPE"} <= {"PATH", "HOME", "TMPDIR", "GIVEN"}  # Python itself sets LC_CTYPE


async def test_children_have_sessions_of_their_own(client: SupervisorClient, shell_spec: MakeSpec) -> None:
    await client.put(shell_spec("g/a", "sleep 1000"))
    await client.wait_ready("g/a", timeout=60)
    [status] = await client.status("g/a")
    assert status.pid is not None
    assert os.getsid(status.pid) == status.pid


@pytest.mark.usefixtures("frequent_housekeeping")
async def test_memory_and_cpu_are_reported(client: SupervisorClient, shell_spec: MakeSpec) -> None:
    # A descendant does the work, because the usage of a process includes its descendants.
    await client.put(shell_spec("g/busy", "sh -c 'while :; do :; done' & wait"), shell_spec("g/idle", "sleep 1000"))
    await client.wait_ready("g", timeout=60)

    async def figures_are_plausible() -> bool:
        busy, idle = await client.status(measured=True)
        return (
            (busy.memory_bytes or 0) > 100_000
            and (busy.cpu_seconds or 0) > 0.05
            and (busy.cpu_percent or 0) > 10
            and idle.cpu_percent == 0
        )

    await eventually(figures_are_plausible, "plausible figures")


@pytest.mark.usefixtures("frequent_housekeeping")
async def test_logs_are_kept_below_their_limit(client: SupervisorClient, shell_spec: MakeSpec, data_dir: Path) -> None:
    script = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.001; done"
    await client.put(shell_spec("g/a", script, log_limit_bytes=2000))
    log, older = data_dir / "logs/g/a.log", data_dir / "logs/g/a.log.1"

    def was_rotated_twice() -> bool:
        return older.exists() and not older.read_text().startswith("line 1\n")

    await eventually(was_rotated_twice, "the second rotation of the log")
    await client.stop("g/a")
    numbers = [int(line.split()[1]) for line in (older.read_text() + log.read_text()).splitlines()]
    assert numbers == sorted(numbers)
    assert older.stat().st_mode & 0o777 == log.stat().st_mode & 0o777 == 0o600
    assert (await client.logs("g/a", lines=2)) == [f"line {number}" for number in numbers[-2:]]
