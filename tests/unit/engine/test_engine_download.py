"""Sources come from a module proxy and match go.sum, or the build fails."""

import json
import shutil
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.waiting import PATIENCE
from unit.engine.workshop import Workshop

from kairship.engine import Event, build
from kairship.engine.command import run
from kairship.engine.errors import DownloadError, NetworkError
from kairship.engine.progress import Downloading


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002 - the name in its base class
        """Logs nothing."""


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[str]:
    """The address of a module proxy, which is a folder that is served over HTTP."""
    (tmp_path / "proxy").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path / "proxy"))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
async def proxied(workshop: Workshop, proxy: str, tmp_path: Path) -> AsyncIterator[Workshop]:
    """The small engine with its sources on a module proxy instead of next to it, pinned by go.sum."""
    served = tmp_path / "proxy" / "example.test" / "demo" / "@v"
    served.mkdir(parents=True)
    source = workshop.demo / "source"
    (served / "v1.2.3.info").write_text(json.dumps({"Version": "v1.2.3"}))
    shutil.copy(source / "go.mod", served / "v1.2.3.mod")
    _zip(source, served / "v1.2.3.zip")
    gomod = workshop.demo / "go.mod"
    gomod.write_text(gomod.read_text().replace("replace example.test/demo => ./source\n", ""))
    environ = workshop.environ | {
        "GOPROXY": proxy,
        "GONOPROXY": "none",
        "GOSUMDB": "off",
        "GOMODCACHE": str(tmp_path / "sources"),
        "GOFLAGS": "-mod=mod -modcacherw",
    }
    shutil.rmtree(source)
    pinned = await run(["go", "mod", "download", "all"], cwd=workshop.demo, env=environ, timeout=PATIENCE)
    assert pinned.status == 0, pinned.errors
    await run(["go", "clean", "-modcache"], env=environ, timeout=PATIENCE)
    assert not (tmp_path / "sources").exists()
    yield replace(workshop, environ=environ)
    await run(["go", "clean", "-modcache"], env=environ, timeout=PATIENCE)


def _zip(source: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(source.rglob("*")):
            if file.is_file():
                archive.write(file, f"example.test/demo@v1.2.3/{file.relative_to(source).as_posix()}")


async def _build(workshop: Workshop) -> list[Event]:
    events: list[Event] = []
    await build(catalogue=workshop.catalogue, cache=workshop.cache, environ=workshop.environ, progress=events.append)
    return events


async def test_sources_are_downloaded_and_reported(proxied: Workshop) -> None:
    events = [event for event in await _build(proxied) if isinstance(event, Downloading)]
    assert events == [Downloading("demo"), Downloading("demo", fetched=1, latest="example.test/demo v1.2.3")]
    module = proxied.catalogue.modules[0]
    copied = proxied.cache.tree(module, module.trees[0]) / "kept.yaml"
    # Go's module cache is read-only, but copies from it must be removable.
    assert copied.stat().st_mode & 0o200
    assert copied.parent.stat().st_mode & 0o200


async def test_sources_that_go_sum_does_not_know_are_refused(proxied: Workshop, tmp_path: Path) -> None:
    archive = tmp_path / "proxy" / "example.test" / "demo" / "@v" / "v1.2.3.zip"
    with zipfile.ZipFile(archive, "a") as tampered:
        tampered.writestr("example.test/demo@v1.2.3/fast/evil.go", "package main\n")
    with pytest.raises(DownloadError, match="checksum mismatch") as raised:
        await _build(proxied)
    assert not isinstance(raised.value, NetworkError)
    assert proxied.compiled() == []
