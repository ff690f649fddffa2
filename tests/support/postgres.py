"""A PostgreSQL server of a test run's own, in a temporary folder, reached over a unix socket alone.

The binaries are the system's (Debian: `postgresql`). It refuses to run as root, so root runs it as another user.
"""

import os
import pwd
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_TIMEOUT = 60


def _binaries() -> Path:
    newest_first = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = next(iter(newest_first), None) or (Path(on_path).parent if (on_path := shutil.which("initdb")) else None)
    assert found is not None, "the tests need PostgreSQL (Debian: apt install postgresql)"
    return found


def _account() -> str | None:
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@contextmanager
def postgres_server(folder: Path) -> Iterator["Server"]:
    """`folder` has a short path: the socket is in it."""
    account, binaries = _account(), _binaries()
    data = folder / "data"
    if account is not None:
        shutil.chown(folder, account)

    def run(*command: str) -> None:
        subprocess.run(
            command,
            check=True,
            timeout=_TIMEOUT,
            user=account,
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdout=subprocess.DEVNULL,
        )

    run(str(binaries / "initdb"), "-D", str(data), "-U", "kairship", "--auth=trust", "--no-sync", "-E", "UTF8")
    options = f"-k {folder} -h '' -c fsync=off -c max_connections=200 -c shared_buffers=64MB"
    run(str(binaries / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield Server(folder, run, binaries)
    finally:
        run(str(binaries / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")


class Server:
    def __init__(self, folder: Path, run: Callable[..., None], binaries: Path) -> None:
        self._folder = folder
        self._run = run
        self._binaries = binaries

    def database(self) -> str:
        """The address of a new, empty one."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._run(str(self._binaries / "createdb"), "-h", str(self._folder), "-U", "kairship", name)
        return f"postgresql://kairship@/{name}?host={self._folder}"
