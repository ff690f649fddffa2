"""Ports of the plane's processes. They are allocated once, stored, and checked before use.

Ports are below the kernel's ephemeral range, so that no outgoing connection can use one while its owner is down, and
below the NodePort range of Kubernetes. Running planes claim their ports (`claims`), so that no two of them choose
the same one. If another program, or another plane, has taken a port of a stopped process, `taken` reports it.

Everything here blocks for a moment (files, /proc): call it in a thread.
"""

import errno
import hashlib
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import psutil

from kairship.process.loopback import LOOPBACK
from kairship.supervisor import atomic
from kairship.supervisor.errors import PortsExhausted
from kairship.supervisor.ports.claims import PortClaims

LOWEST = 20000
HIGHEST = 29999

_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


class PortAllocator:
    """Allocates the ports of one data directory, by owner and name, and claims them for as long as it is open."""

    def __init__(self, path: Path, *, seed: str, ports: range | None = None) -> None:
        self._path = path
        self._range = ports or usable_range()
        self._first = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % len(self._range)
        self._allocations = atomic.load(path, dict[str, dict[str, int]], default={})
        self._claims = PortClaims()
        for port in self._allocated():
            self._claims.claim(port)  # in vain if a plane took the port while this one was stopped: `taken` reports it

    def close(self) -> None:
        """Ends the claims. The allocations stay."""
        self._claims.release_all()

    @staticmethod
    def allocated(path: Path) -> list[int]:
        """Every port that is allocated in the file at `path`."""
        allocations = atomic.load(path, dict[str, dict[str, int]], default={})
        return sorted(port for ports in allocations.values() for port in ports.values())

    def allocate(self, owner: str, names: Sequence[str]) -> dict[str, int]:
        """A port for each name: the stored one, or a free one, which is then stored."""
        known = self._allocations.get(owner, {})
        missing = [name for name in dict.fromkeys(names) if name not in known]
        if missing:
            chosen = known | dict(zip(missing, self._find(len(missing)), strict=True))
            self._write(self._allocations | {owner: chosen})
        return {name: self._allocations[owner][name] for name in names}

    def release(self, owner: str) -> None:
        if owner in self._allocations:
            for port in self._allocations[owner].values():
                self._claims.release(port)
            self._write({other: ports for other, ports in self._allocations.items() if other != owner})

    def _find(self, count: int) -> list[int]:
        allocated = self._allocated()
        found: list[int] = []
        for port in self._candidates():
            if port in allocated or not self._claims.claim(port):
                continue
            if not is_free(port):
                self._claims.release(port)
                continue
            found.append(port)
            if len(found) == count:
                return found
        for port in found:
            self._claims.release(port)
        raise PortsExhausted(f"no {count} free ports between {self._range.start} and {self._range.stop - 1}")

    def _allocated(self) -> set[int]:
        return {port for ports in self._allocations.values() for port in ports.values()}

    def _candidates(self) -> Iterator[int]:
        yield from self._range[self._first :]
        yield from self._range[: self._first]

    def _write(self, allocations: dict[str, dict[str, int]]) -> None:
        atomic.replace(self._path, msgspec.json.encode(allocations))
        self._allocations = allocations


def usable_range() -> range:
    ephemeral_start = int(_EPHEMERAL_RANGE.read_text().split()[0])
    highest = min(HIGHEST, ephemeral_start - 1)
    # If the ephemeral range covers all ports, there is no better choice than the usual range.
    return range(LOWEST, (highest if highest > LOWEST else HIGHEST) + 1)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of loopback. SO_REUSEADDR is set as servers do, so that connections
    in TIME_WAIT do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE  # the server itself will report any other error
    return True


def taken(ports: Iterable[int]) -> dict[int, str]:
    """The ports that another process listens on, each with a description of that process."""
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
