"""Every mistake of a user ends in a message and its exit code, and changes nothing."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from unit.cli.shell import Shell

from kairship.embedded import Home
from kairship.embedded.home import FORMAT, PlaneRecord
from kairship.supervisor import daemon

RECORD = PlaneRecord(format=FORMAT, global_uid="g", demo_created=True)


def plane_on_disk(home: Home, content: bytes | None = None) -> None:
    home.root.mkdir()
    (home.root / "plane.json").write_bytes(content or msgspec.json.encode(RECORD))


@pytest.mark.parametrize(
    "words", [("status",), ("member", "list"), ("member", "stop", "oslo"), ("member", "add", "oslo"), ("logs", "a/b")]
)
def test_nothing_there(shell: Shell, words: tuple[str, ...]) -> None:
    typed = shell(*words)
    assert typed.code == 5
    assert str(shell.data_dir) in typed.err
    assert "kairship up" in typed.err
    assert not shell.data_dir.exists()


def test_a_plane_that_is_down(shell: Shell) -> None:
    plane_on_disk(Home(shell.data_dir))
    assert shell("status").code == 5
    assert shell("member", "add", "oslo").code == 5
    assert not (shell.data_dir / "planes").exists()


def test_nothing_joins_a_plane_that_is_not_complete(shell: Shell) -> None:
    plane_on_disk(Home(shell.data_dir), msgspec.json.encode(msgspec.structs.replace(RECORD, demo_created=False)))
    asyncio.run(daemon.start(shell.data_dir))
    try:
        typed = shell("member", "add", "oslo")
    finally:
        asyncio.run(daemon.stop(shell.data_dir))
    assert typed.code == 2
    assert "kairship up" in typed.err
    assert not (shell.data_dir / "planes").exists()


def test_down_on_nothing_is_no_mistake(shell: Shell) -> None:
    typed = shell("down", "--purge", "--output", "json")
    assert (typed.code, typed.json) == (0, {"stopped": False, "purged": False})
    assert not shell.data_dir.exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("engine", "build", "--group", "nope"), "nope"),
        (("up", "--members", "99"), "less than or equal to 3"),
        (("up", "--output", "xml"), "xml"),
        (("upp",), "upp"),
        (("logs",), "process"),
    ],
)
def test_wrong_words(shell: Shell, words: tuple[str, ...], expected: str) -> None:
    typed = shell(*words)
    assert typed.code == 2
    assert expected in typed.err.lower()
    assert not shell.data_dir.exists()


def test_unknown_member_and_process(shell: Shell) -> None:
    plane_on_disk(Home(shell.data_dir))
    log = shell.data_dir / "logs" / "global" / "etcd.log"
    log.parent.mkdir(parents=True)
    log.touch()
    typed = shell("logs", "nope/nope")
    assert typed.code == 2
    assert "global/etcd" in typed.err


def test_a_file_in_place_of_the_directory(shell: Shell) -> None:
    shell.data_dir.write_text("precious")
    typed = shell("up")
    assert typed.code == 3
    assert "not a directory" in typed.err
    assert shell("status").code == shell("member", "list").code == 5
    assert shell("doctor").code == 1
    assert shell("down", "--purge", "--yes").code == 0
    assert shell.data_dir.read_text() == "precious"


def test_a_directory_that_cannot_be_created(shell: Shell) -> None:
    typed = shell("up", "--data-dir", "/proc/kairship/plane")
    assert typed.code == 3
    assert "/proc/kairship/plane" in typed.err


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize(("options", "expected"), [("size=2m", "2 MiB are free"), ("ro", "not writable")])
def test_a_disk_that_is_full_or_read_only(tmp_path: Path, options: str, expected: str) -> None:
    # It runs in its own mount namespace, so that the mount ends with the command.
    script = 'mount -t tmpfs -o "$0" none "$1" && exec "$2" -m kairship up --data-dir "$1"'
    command = ["unshare", "--mount", "sh", "-c", script, options, str(tmp_path), sys.executable]
    typed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert typed.returncode == 3
    assert expected in typed.stderr
    assert "Traceback" not in typed.stderr


def test_somebody_elses_directory(shell: Shell) -> None:
    shell.data_dir.mkdir()
    thesis = shell.data_dir / "thesis.tex"
    thesis.write_text("precious")
    typed = shell("up")
    assert typed.code == 3
    assert "thesis.tex" in typed.err
    assert shell("down", "--purge", "--yes").code == 0
    assert thesis.read_text() == "precious"


def test_a_directory_of_a_newer_version(shell: Shell) -> None:
    newer = b'{"format": 99, "something": "new"}'
    plane_on_disk(Home(shell.data_dir), newer)
    for words in (("up",), ("member", "list")):
        typed = shell(*words)
        assert typed.code == 3
        assert "newer version" in typed.err
    assert (shell.data_dir / "plane.json").read_bytes() == newer


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b'{"format": "one"}', b'{"format": 1}'])
def test_a_damaged_record(shell: Shell, content: bytes) -> None:
    plane_on_disk(Home(shell.data_dir), content)
    typed = shell("up")
    assert typed.code == 3
    assert "damaged" in typed.err
    assert "--purge" in typed.err
    assert shell("down", "--purge", "--yes", "-o", "json").json == {"stopped": False, "purged": True}
    assert not shell.data_dir.exists()


def test_another_command_is_changing_the_plane(shell: Shell) -> None:
    with Home(shell.data_dir).exclusive():
        for words in (("up",), ("down",), ("down", "--purge", "--yes")):
            typed = shell(*words)
            assert typed.code == 6
            assert f"pid {os.getpid()}" in typed.err


def test_a_binary_of_the_wrong_version(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / "engine" / "etcd"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\necho etcd Version: 3.0.1\n")
    stub.chmod(0o755)
    monkeypatch.setenv("KAIRSHIP_ENGINE_DIR", str(stub.parent))
    typed = shell("up")
    assert typed.code == 4
    assert str(stub) in typed.err
    assert "v3.0.1" in typed.err


def test_brought_binaries_are_never_added_to(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With KAIRSHIP_ENGINE_DIR nothing is built: an incomplete folder is an error, found before anything starts."""
    (tmp_path / "engine").mkdir()
    monkeypatch.setenv("KAIRSHIP_ENGINE_DIR", str(tmp_path / "engine"))
    monkeypatch.setenv("KAIRSHIP_CACHE_DIR", str(tmp_path / "cache"))
    typed = shell("up")
    assert typed.code == 4
    assert "kube-apiserver" in typed.err
    assert not (tmp_path / "cache").exists()
    assert not (shell.data_dir / "supervisor").exists()


def test_no_network_during_a_build(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIRSHIP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:1")
    typed = shell("up")
    assert typed.code == 4
    assert "connection refused" in typed.err
    assert "KAIRSHIP_ENGINE_DIR" in typed.err
    assert not (shell.data_dir / "supervisor").exists()


@pytest.mark.parametrize("option", ["--trusted-proxy", "--allow-address"])
def test_what_is_no_network_is_said_at_once(shell: Shell, tmp_path: Path, option: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    needed = ("--kubeconfig", str(kubeconfig), "--audit-dir", str(tmp_path))
    behind = ("--ghippo", "127.0.0.1:1", "--ghippo-ca", str(kubeconfig), "--ghippo-token", str(kubeconfig))
    typed = shell("apiserver", *needed, *behind, option, "10.0.0.1/8")
    assert typed.code != 0
    assert option in typed.err


@pytest.mark.parametrize("name", ["Kube-System", "a/b", "karmada-es-*", ""])
def test_what_is_no_namespace_can_be_neither_excluded_nor_reserved(shell: Shell, tmp_path: Path, name: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    certificate = ("--tls-cert", str(kubeconfig), "--tls-key", str(kubeconfig))
    typed = shell("kpanda", "--kubeconfig", str(kubeconfig), *certificate, "--exclude-namespace", name)
    assert typed.code == 2
    assert "--exclude-namespace" in typed.err
    for command in (("up",), ("controller-manager", "--kubeconfig", str(kubeconfig), "--backups", str(tmp_path))):
        typed = shell(*command, "--reserve-namespace", name)
        assert typed.code == 2
        assert "--reserve-namespace" in typed.err
