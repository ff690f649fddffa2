"""`down --purge` asks first, and deletes only our files."""

from unit.cli.shell import Shell

from kairship.embedded import Home


def ruins(home: Home) -> None:
    """The files that an interrupted `up` leaves."""
    home.open()
    for name in ("planes", "supervisor", "logs"):
        (home.root / name / "deep").mkdir(parents=True)


def test_it_asks_first(shell: Shell) -> None:
    ruins(Home(shell.data_dir))
    for answers in ("n\n", "", "\n"):
        typed = shell("down", "--purge", answers=answers)
        assert typed.code == 1
        assert str(shell.data_dir) in typed.err
        assert (shell.data_dir / "plane.json").exists()
    typed = shell("down", "--purge", "--output", "json", answers="y\n")
    assert typed.json == {"stopped": False, "purged": True}
    assert not shell.data_dir.exists()


def test_a_plane_without_its_record(shell: Shell) -> None:
    ruins(Home(shell.data_dir))
    (shell.data_dir / "plane.json").unlink()
    typed = shell("up")
    assert typed.code == 3
    assert "--purge" in typed.err
    assert shell("down", "--purge", "--yes").code == 0
    assert not shell.data_dir.exists()


def test_other_files_stay(shell: Shell) -> None:
    ruins(Home(shell.data_dir))
    (shell.data_dir / "notes").write_text("precious")
    assert shell("down", "--purge", "--yes").code == 0
    assert [path.name for path in shell.data_dir.iterdir()] == ["notes"]


def test_without_purge_everything_stays(shell: Shell) -> None:
    ruins(Home(shell.data_dir))
    typed = shell("down")
    assert (typed.code, typed.out) == (0, f"No plane was running in {shell.data_dir}.\n")
    assert Home(shell.data_dir).has_plane
