"""Runs the `kairship` command inside the test's own process, through the same `main` that a shell calls."""

import io
import sys
from pathlib import Path

import pytest
from unit.cli.shell import Shell, Typed

from kairship.cli import main


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Commands use `shell.data_dir`, which does not exist yet."""
    data_dir = tmp_path / "plane"
    monkeypatch.setenv("KAIRSHIP_DATA_DIR", str(data_dir))

    def run(words: tuple[str, ...], answers: str) -> Typed:
        monkeypatch.setattr(sys, "argv", ["kairship", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Typed(code=code, out=captured.out, err=captured.err)

    return Shell(data_dir, run)
