"""`kairship kubeconfig` changes the user's files in the way of kubectl, and changes nothing else."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from kairship.cli.account.kubeconfig_file import files, merge
from kairship.cli.account.rest_client import RequestRefused

THEIRS = """apiVersion: v1
kind: Config
preferences: {colors: true}
current-context: work
clusters:
- name: work
  cluster: {server: "https://work:6443", insecure-skip-tls-verify: true}
users:
- name: work
  user: {token: "0123", exp: 2026-01-01}
contexts:
- name: work
  context: {cluster: work, user: work, namespace: "012"}
extensions:
- name: of-somebody
  extension: {a: [1, 2]}
"""


def added(name: str = "ours", server: str = "https://plane") -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": "t"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def load(path: Path) -> Any:
    """Loads all values as text."""
    return yaml.load(path.read_text(), yaml.BaseLoader)  # noqa: S506 - it creates nothing but text


def names(path: Path, section: str) -> list[str]:
    return [entry["name"] for entry in load(path)[section]]


def test_a_first_file_is_made_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config"
    assert merge(added(), [path], switch=True) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load(path)["current-context"] == "ours"
    assert load(path)["kind"] == "Config"
    assert [each.name for each in path.parent.iterdir()] == ["config"]


def test_what_others_have_put_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS)
    before = load(path)
    merge(added(), [path], switch=False)
    merge(added(server="https://moved"), [path], switch=False)
    after = load(path)
    for section in ("clusters", "users", "contexts"):
        assert [entry for entry in after[section] if entry["name"] == "work"] == before[section]
        assert names(path, section) == ["work", "ours"]
    assert after["clusters"][1]["cluster"]["server"] == "https://moved"
    assert {key: after[key] for key in ("preferences", "extensions", "current-context")} == {
        key: before[key] for key in ("preferences", "extensions", "current-context")
    }


def test_several_files_are_changed_where_kubectl_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (tmp_path / name for name in ("absent", "second", "third"))
    second.write_text("apiVersion: v1\nkind: Config\n")
    third.write_text(THEIRS)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (first, second, "", third, second))))
    paths = files(None)
    assert paths == [first, second, third]
    assert merge(added(), paths, switch=True) == second  # the first file that exists
    assert not first.exists()
    assert "current-context" not in load(second)
    assert load(third)["current-context"] == "ours"  # in the file that had it before
    merge(added("work", "https://moved"), paths, switch=False)
    assert names(second, "clusters") == ["ours"]
    assert load(third)["clusters"][0]["cluster"] == {"server": "https://moved"}


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files(None) == [tmp_path / ".kube" / "config"]
    assert files(Path("mine")) == [Path("mine")]
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a{os.pathsep}{tmp_path}/b")
    assert merge(added(), files(None), switch=True) == tmp_path / "b"  # no file exists, so the last one is used


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real, link = tmp_path / "dotfiles" / "config", tmp_path / "config"
    real.write_text(THEIRS)
    link.symlink_to(real)
    merge(added(), [link], switch=True)
    assert link.is_symlink()
    assert names(real, "users") == ["work", "ours"]


@pytest.mark.parametrize(
    "content", ["- a\n- b\n", "{", "clusters: 7\n", "a: &x [1]\nb: *x\n", "---\na: 1\n---\nb: 1\n"]
)
def test_what_is_no_kubeconfig_is_not_touched(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(RequestRefused, match="nothing was changed"):
        merge(added(), [path], switch=True)
    assert path.read_text() == content
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_the_lock_of_kubectl_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kairship.cli.account.kubeconfig_file._WAIT", 0.1)
    path = tmp_path / "config"
    path.write_text(THEIRS)
    lock = tmp_path / "config.lock"
    lock.touch()
    with pytest.raises(RequestRefused, match=r"config\.lock"):
        merge(added(), [path], switch=True)
    assert path.read_text() == THEIRS
    assert lock.exists()
