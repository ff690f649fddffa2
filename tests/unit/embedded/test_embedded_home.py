"""The data directory: what it refuses, its lock, and its record."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kairship.embedded import Home, HomeBusy, HomeError, NoPlane
from kairship.embedded.home import default_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "plane")


def test_what_was_decided_once_stays(home: Home) -> None:
    with pytest.raises(NoPlane):
        home.read()
    first = home.open()
    assert home.open() == home.read() == first
    assert (home.root / "plane.json").stat().st_mode & 0o077 == 0


def test_every_name_of_a_directory_is_the_same_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert {Home(Path(name)).root for name in ("real", "link", "~/link", "real/../link")} == {tmp_path / "real"}


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAIRSHIP_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert default_home() == tmp_path / "xdg" / "kairship"
    monkeypatch.setenv("KAIRSHIP_DATA_DIR", str(tmp_path / "own"))
    assert Home(tmp_path / "own").is_default


def test_a_disk_of_its_own_counts_as_empty(home: Home) -> None:
    (home.root / "lost+found").mkdir(parents=True)
    assert home.open() == home.read()


def test_no_room(home: Home) -> None:
    home.open()
    with pytest.raises(HomeError, match="are free"):
        home.require_room(2**62)


def test_one_at_a_time(home: Home) -> None:
    with home.exclusive(), pytest.raises(HomeBusy, match=f"pid {os.getpid()}"), Home(home.root).exclusive():
        pytest.fail("two had it")
    with home.exclusive():
        pass


def test_a_killed_command_leaves_no_lock(home: Home) -> None:
    script = (
        "import sys, pathlib; from kairship.embedded import Home\n"
        "with Home(pathlib.Path(sys.argv[1])).exclusive(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(home.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HomeBusy, match=f"pid {holder.pid}"), home.exclusive():
            pytest.fail("two had it")
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
    with home.exclusive():
        pass


def test_the_lock_of_a_purged_directory_is_worth_nothing(home: Home) -> None:
    """A command that waited during a purge must get a new lock, and must not share one with an earlier command."""
    with home.exclusive():
        home.open()
        home.purge()
        assert not home.root.exists()
        with home.exclusive():
            home.open()
        assert home.has_plane


def test_purging_what_is_not_there(home: Home) -> None:
    home.purge()
    assert not home.is_used


def test_purging_follows_no_links(home: Home, tmp_path: Path) -> None:
    home.open()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    home.planes.symlink_to(tmp_path / "elsewhere")
    home.purge()
    assert (tmp_path / "elsewhere" / "file").exists()
    assert not home.root.exists()
