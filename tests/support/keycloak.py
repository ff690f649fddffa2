"""A real identity provider: Keycloak, started by whoever needs it, on a port of its own and gone afterwards.

The distribution comes from Maven Central once and is kept beside the engine's binaries, outside the checkout.
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


@dataclass(frozen=True)
class Keycloak:
    url: str
    admin: str
    password: str


@contextlib.contextmanager
def running() -> Iterator[Keycloak]:
    with tempfile.TemporaryDirectory(prefix="kairship-keycloak-", ignore_cleanup_errors=True) as directory:
        home = Path(directory) / _NAME
        with zipfile.ZipFile(_distribution()) as archive:
            archive.extractall(directory)
        (home / "bin/kc.sh").chmod(0o755)
        port, password = _free_port(), secrets.token_urlsafe(16)
        environment = {
            "PATH": os.environ["PATH"],
            "KC_BOOTSTRAP_ADMIN_USERNAME": "root",
            "KC_BOOTSTRAP_ADMIN_PASSWORD": password,
            "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m",
        }
        options = [
            f"--http-port={port}",
            "--http-host=127.0.0.1",
            "--db=dev-mem",
            "--cache=local",
            "--health-enabled=false",
        ]
        with (Path(directory) / "log").open("wb") as log:
            process = subprocess.Popen(
                [home / "bin/kc.sh", "start-dev", *options],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            found = Keycloak(f"http://127.0.0.1:{port}", "root", password)
            _wait(found, process, Path(directory) / "log")
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


def _distribution() -> Path:
    cache = Path(os.environ.get("KAIRSHIP_CACHE_DIR") or Path.home() / ".cache/kairship") / "keycloak"
    archive = cache / f"keycloak-quarkus-dist-{VERSION}.zip"
    if archive.exists():
        return archive
    if shutil.which("mvn") is None:
        raise RuntimeError("Maven is needed to fetch Keycloak: apt install maven")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as fresh:
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={fresh}"],
            cwd=fresh,
            stdin=subprocess.DEVNULL,
            timeout=600,
            check=True,
        )
        (Path(fresh) / archive.name).replace(archive)
    return archive


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
