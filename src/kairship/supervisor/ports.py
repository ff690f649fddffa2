"""Ports of the plane's processes: chosen once, remembered, and checked before use.

They lie below the kernel's ephemeral range, so that no outgoing connection can sit on one while its owner is down, and
below the NodePort range of Kubernetes. Each data directory starts its search elsewhere, so two planes rarely meet; when
they do, or a stranger has taken a port of a stopped process, `taken` says who it is.

Everything here blocks for a moment (files, /proc): call it in a thread.
"""

import errno
import hashlib
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import psutil

from kairship.supervisor import atomic
from kairship.supervisor.errors import PortsExhausted

LOWEST = 20000
HIGHEST = 29999

_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


class PortBook:
    """The ports of one data directory, by owner and name."""

    def __init__(self, path: Path, *, seed: str, ports: range | None = None) -> None:
        self._path = path
        self._range = ports or usable_range()
        self._first = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % len(self._range)
        self._book = atomic.load(path, dict[str, dict[str, int]], default={})

    @staticmethod
    def remembered(path: Path) -> list[int]:
        """Every port in the book at that path, for those who only want to look."""
        book = atomic.load(path, dict[str, dict[str, int]], default={})
        return sorted(port for ports in book.values() for port in ports.values())

    def allocate(self, owner: str, names: Sequence[str]) -> dict[str, int]:
        """A port for each name: the remembered one, or a free one that is remembered from now on."""
        known = self._book.get(owner, {})
        missing = [name for name in dict.fromkeys(names) if name not in known]
        if missing:
            chosen = known | dict(zip(missing, self._find(len(missing)), strict=True))
            self._write(self._book | {owner: chosen})
        return {name: self._book[owner][name] for name in names}

    def release(self, owner: str) -> None:
        if owner in self._book:
            self._write({other: ports for other, ports in self._book.items() if other != owner})

    def _find(self, count: int) -> list[int]:
        remembered = {port for ports in self._book.values() for port in ports.values()}
        found = []
        for port in self._candidates():
            if port not in remembered and is_free(port):
                found.append(port)
                if len(found) == count:
                    return found
        raise PortsExhausted(f"no {count} free ports between {self._range.start} and {self._range.stop - 1}")

    def _candidates(self) -> Iterator[int]:
        yield from self._range[self._first :]
        yield from self._range[: self._first]

    def _write(self, book: dict[str, dict[str, int]]) -> None:
        atomic.replace(self._path, msgspec.json.encode(book))
        self._book = book


def usable_range() -> range:
    ephemeral_start = int(_EPHEMERAL_RANGE.read_text().split()[0])
    highest = min(HIGHEST, ephemeral_start - 1)
    # Where the ephemeral range was widened to cover everything there is no better place than the usual one.
    return range(LOWEST, (highest if highest > LOWEST else HIGHEST) + 1)


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1:port. SO_REUSEADDR, as servers set it: TIME_WAIT does not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE  # what else is wrong with it, its server will say best
    return True


def taken(ports: Iterable[int]) -> dict[int, str]:
    """Those of `ports` that cannot be listened on, and who holds them, in words."""
    held = [port for port in ports if not is_free(port)]
    if not held:
        return {}
    owners = {
        connection.laddr.port: connection.pid
        for connection in psutil.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr
    }
    return {port: _describe(owners.get(port)) for port in held}


def _describe(pid: int | None) -> str:
    if pid is None:
        return "a process of another user"
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:
        return f"pid {pid}"
