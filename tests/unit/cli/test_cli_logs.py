"""`kairship logs` on the files that processes leave."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from unit.cli.shell import Shell


@pytest.fixture
def log(shell: Shell) -> Path:
    path = shell.data_dir / "logs" / "global" / "etcd.log"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"line {number}\n" for number in range(200)))
    return path


def test_the_last_lines(shell: Shell, log: Path) -> None:
    assert shell("logs", "global/etcd", "-n", "2").out == "line 198\nline 199\n"
    assert len(shell("logs", "global/etcd").out.splitlines()) == 100


def test_json(shell: Shell, log: Path) -> None:
    result = shell("logs", "global/etcd", "-n", "1", "-o", "json").json
    assert result == {"process": "global/etcd", "log": str(log), "lines": ["line 199"]}
    assert shell("logs", "global/etcd", "--follow", "-o", "json").code == 2


def test_the_supervisors_own(shell: Shell, log: Path) -> None:
    (shell.data_dir / "logs" / "supervisor.log").write_text("mine\n")
    assert shell("logs", "supervisor").out == "mine\n"


def test_following_through_a_rotation(shell: Shell, log: Path) -> None:
    command = [sys.executable, "-m", "kairship", "logs", "global/etcd", "-n", "1", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as following:
        assert following.stdout is not None
        try:
            assert following.stdout.readline() == "line 199\n"
            with log.open("a") as writer:
                writer.write("after\n")
            assert following.stdout.readline() == "after\n"
            os.truncate(log, 0)
            with log.open("a") as writer:
                writer.write("new\n")
            assert following.stdout.readline() == "new\n"
            following.send_signal(signal.SIGINT)
            assert following.wait(60) == 130
        finally:
            following.kill()
