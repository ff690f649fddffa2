"""Debian's PostgreSQL. Each test session that needs it runs a server of its own on a Unix socket."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import psycopg
from psycopg import sql

_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "autovacuum": "off",
}


def empty(url: str, tables: Iterable[str]) -> None:
    """Empties tables, which is far faster than a new database for each test."""
    names = sql.SQL(", ").join(sql.Identifier(table) for table in tables)
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(names))


def new_database(url: str) -> str:
    """Creates an empty database on the same server, and returns its URL."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return url.replace("/postgres?", f"/{name}?")


def programs() -> Path:
    """Returns the folder of initdb and pg_ctl. Debian keeps them in a folder for each version, outside PATH."""
    found = shutil.which("initdb")
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if versions:
        return versions[-1].parent
    if found:
        return Path(found).resolve().parent
    raise RuntimeError("PostgreSQL is missing: apt install postgresql")


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Runs a server, and yields the URL of an empty database."""
    # Not below pytest's own directory: the path of a socket has at most 107 characters.
    directory = Path(tempfile.mkdtemp(prefix="kairship-pg-"))
    owner = _owner()
    data, log = directory / "data", directory / "log"
    try:
        if owner is not None:
            os.chown(directory, *owner)
        _run(owner, "initdb", "--pgdata", data, "--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8")
        settings = " ".join(f"-c {name}='{value}'" for name, value in _SETTINGS.items())
        options = f"{settings} -c unix_socket_directories='{directory}'"
        _run(owner, "pg_ctl", "--pgdata", data, "--log", log, "--options", options, "--wait", "start")
        try:
            yield f"postgresql://postgres@/postgres?host={directory}"
        finally:
            _run(owner, "pg_ctl", "--pgdata", data, "--mode=immediate", "--wait", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _owner() -> tuple[int, int] | None:
    """The user and group for the server if the tests run as root, which PostgreSQL refuses."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise RuntimeError("there is no user that PostgreSQL could run as")


def _run(owner: tuple[int, int] | None, program: str, *arguments: str | Path) -> None:
    user, group = owner or (None, None)
    done = subprocess.run(
        [programs() / program, *arguments],
        user=user,
        group=group,
        extra_groups=[] if owner else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # the server inherits it, so a pipe would never end
        stderr=subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{program} failed: {(done.stderr or b'').decode()}")
