"""A small engine for every test (`workshop`), and scripts that stand in for binaries."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.engine.workshop import GO_MOD, GO_WRAPPER, PROGRAM, Workshop

from kairship.engine.cache import Cache


@pytest.fixture
def workshop(tmp_path: Path, script: Callable[[Path, str], Path]) -> Workshop:
    go = shutil.which("go")
    assert go, "these tests build with the machine's Go"
    demo = tmp_path / "modules" / "demo"
    for program in ("fast", "slow", "extra"):
        folder = demo / "source" / program
        folder.mkdir(parents=True)
        (folder / "main.go").write_text(PROGRAM)
    files = demo / "source" / "files"
    (files / "testdata").mkdir(parents=True)
    (files / "kept.yaml").write_text("kept: true\n")
    (files / "testdata" / "input.yaml").write_text("kept: false\n")
    (files / "README.md").write_text("not needed at run time\n")
    (demo / "source" / "go.mod").write_text("module example.test/demo\n\ngo 1.25.0\n")
    (demo / "go.mod").write_text(GO_MOD)
    (demo / "go.sum").touch()
    log, gate = tmp_path / "compilations", tmp_path / "gate"
    script(tmp_path / "bin" / "go", GO_WRAPPER.format(log=log, gate=gate, go=go))
    return Workshop(
        modules=tmp_path / "modules",
        cache=Cache(tmp_path / "cache"),
        environ={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        log=log,
        gate=gate,
    )


@pytest.fixture
def script() -> Callable[[Path, str], Path]:
    """Write an executable script."""

    def write(path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    return write
