"""What every command has in common: help, JSON, completion of names."""

import shlex
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest
import typer
from unit.cli.shell import Shell

import kairship
from kairship.cli.app import assembled
from kairship.embedded import Home, Members, demo
from kairship.engine import Engine
from kairship.supervisor import SupervisorClient


def leaves(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield words, command
        return
    for name, child in children.items():
        yield from leaves(child, (*words, name))


EVERYTHING = dict(leaves(typer.main.get_command(assembled())))
# A server has no result to print; it logs JSON.
SERVERS = (("apiserver",), ("controller-manager",), ("ghippo",), ("kpanda",))
# These print no result; a credential is for programs anyway.
WITHOUT_CHOICE = (("approve",), ("logout",), ("token",))
COMMANDS = {words: command for words, command in EVERYTHING.items() if words not in (*SERVERS, *WITHOUT_CHOICE)}


def test_the_commands_that_we_promise() -> None:
    assert {words[0] for words in COMMANDS} == {
        "up", "down", "status", "logs", "doctor", "engine", "member", "version", "login", "whoami", "kubeconfig"
    }  # fmt: skip
    assert {words[1] for words in COMMANDS if words[0] == "member"} == {"add", "remove", "stop", "start", "list"}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_json(shell: Shell, words: tuple[str, ...]) -> None:
    typed = shell(*words, "--help")
    assert typed.code == 0
    assert "--output" in typed.out
    assert shell(*words, "-h").out == typed.out


@pytest.mark.parametrize("words", WITHOUT_CHOICE, ids=" ".join)
def test_every_other_command_has_help(shell: Shell, words: tuple[str, ...]) -> None:
    assert words in EVERYTHING
    assert shell(*words, "--help").code == 0


@pytest.mark.parametrize("words", SERVERS, ids=" ".join)
def test_every_server_has_help(shell: Shell, words: tuple[str, ...]) -> None:
    assert words in EVERYTHING
    assert "--kubeconfig" in shell(*words, "--help").out


def test_a_token_is_printed_without_what_servers_need() -> None:
    """kubectl runs it before each command and waits for it."""
    load = "import sys; from kairship.cli.app import assembled; assembled('token')"
    loaded = "print([name for name in ('aiohttp', 'cryptography', 'kairship.embedded') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", f"{load}; {loaded}"], check=True, capture_output=True, text=True)
    assert result.stdout.splitlines() == ["[]"]


def test_version(shell: Shell) -> None:
    result = shell("version", "--output", "json").json
    assert result["kairship"] == kairship.__version__
    names = [component["name"] for component in result["engine"]]
    assert "kube-apiserver" in names
    assert len(names) == len(set(names))
    assert f"kairship {kairship.__version__}" in shell("version").out


def test_engine_list(shell: Shell) -> None:
    listed = shell("engine", "list", "-o", "json").json
    shown = shell("engine", "list").out.splitlines()
    assert all(any(line.startswith(f"{item['name']} ") for line in shown) for item in listed)


def complete(shell: Shell, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    monkeypatch.setenv("_KAIRSHIP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", shlex.join(["kairship", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    return shell().out.split()


def test_completion_of_processes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = shell.data_dir / "logs"
    for name in ("global/etcd", "global/kube-apiserver", "member-oslo/etcd"):
        path = logs / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert complete(shell, monkeypatch, "logs", "global/") == ["global/etcd", "global/kube-apiserver"]
    assert complete(shell, monkeypatch, "logs", "--data-dir", "/nowhere", "glo") == []


def test_completion_of_members(shell: Shell, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    home = Home(shell.data_dir)
    members = Members(home.planes, logs=home.root / "logs", engine=engine, supervisor=SupervisorClient(home.root))
    for spec in demo.MEMBERS:
        members.register(spec)
    damaged = home.planes / "damaged" / "member.json"
    damaged.parent.mkdir()
    damaged.write_text("{")
    assert complete(shell, monkeypatch, "member", "stop", "") == ["frankfurt", "oregon", "singapore"]
    assert complete(shell, monkeypatch, "member", "remove", "o") == ["oregon"]


def test_completion_of_groups(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete(shell, monkeypatch, "engine", "build", "--group", "p") == ["plane"]


def test_members_of_a_plane_that_is_down(shell: Shell, engine: Engine) -> None:
    home = Home(shell.data_dir)
    home.open()
    members = Members(home.planes, logs=home.root / "logs", engine=engine, supervisor=SupervisorClient(home.root))
    members.register(demo.MEMBERS[0])
    (listed,) = shell("member", "list", "-o", "json").json
    assert listed == {
        "spec": msgspec.to_builtins(demo.MEMBERS[0]) | {"nodes": listed["spec"]["nodes"]},
        "state": "down",
    }
    assert shell("member", "list").out.splitlines()[1].split()[:2] == ["frankfurt", "down"]
