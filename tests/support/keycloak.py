"""Keycloak, a real identity provider. A test that needs it runs one on a port of its own.

The distribution is fetched from Maven Central once, and kept in the cache of the engine, outside the checkout.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERSION = "26.4.0"
_ARTIFACT = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
_NAME = f"keycloak-{VERSION}"
_READY = 180.0
_ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": str(Path.home()), "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m"}


@dataclass(frozen=True)
class Keycloak:
    url: str
    admin: str
    password: str


@contextlib.contextmanager
def running() -> Iterator[Keycloak]:
    with tempfile.TemporaryDirectory(prefix="kairship-keycloak-", ignore_cleanup_errors=True) as directory:
        home = Path(directory) / _NAME
        shutil.copytree(_built(), home)
        port, password = _free_port(), secrets.token_urlsafe(16)
        log = Path(directory) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    home / "bin/kc.sh", "start", "--optimized", "--http-enabled=true", "--hostname-strict=false",
                    "--cache=local", "--http-host=127.0.0.1", f"--http-port={port}",
                ],
                env=_ENVIRONMENT
                | {"KC_BOOTSTRAP_ADMIN_USERNAME": "root", "KC_BOOTSTRAP_ADMIN_PASSWORD": password},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        try:
            found = Keycloak(f"http://127.0.0.1:{port}", "root", password)
            _wait(found, process, log)
            yield found
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=30)


def _wait(keycloak: Keycloak, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            urllib.request.urlopen(f"{keycloak.url}/realms/master", timeout=5).close()  # noqa: S310 - our own address
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Keycloak does not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.2)


def _built() -> Path:
    """Returns the distribution after `kc.sh build`, which takes longest and is done once."""
    cache = Path(os.environ.get("KAIRSHIP_CACHE_DIR") or Path.home() / ".cache/kairship") / "keycloak"
    ready = cache / f"{_NAME}-built"
    if ready.exists():
        return ready
    if shutil.which("mvn") is None:
        raise RuntimeError("Maven is needed to fetch Keycloak: apt install maven")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as fresh:
        _run(fresh, "mvn", "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={fresh}")
        with zipfile.ZipFile(next(Path(fresh).glob("*.zip"))) as archive:
            archive.extractall(fresh)
        home = Path(fresh) / _NAME
        (home / "bin/kc.sh").chmod(0o755)
        _run(fresh, home / "bin/kc.sh", "build", "--db=dev-mem")
        with contextlib.suppress(OSError):  # another process was faster
            home.rename(ready)
    return ready


def _run(directory: str, *command: str | Path) -> None:
    subprocess.run(command, cwd=directory, env=_ENVIRONMENT, stdin=subprocess.DEVNULL, timeout=900, check=True)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
