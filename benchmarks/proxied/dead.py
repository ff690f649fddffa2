"""What others notice of a member or an instance that does not answer: its API server is stopped, and many ask it.

Whoever asks it is the one whose other requests are measured: nobody is nearer to it.
"""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from lean_client import LeanClient
from proxied.side import Side

_STUCK = 64
_TIMES = 400


def p99(side: Side, path: str) -> float:
    """In milliseconds."""
    return sorted(side.get(path).seconds for _ in range(_TIMES))[int(_TIMES * 0.99) - 1] * 1e3


@contextmanager
def silent(pid: int, asked: LeanClient, path: str) -> Iterator[None]:
    """A server that accepts and says nothing, and many who wait for it."""
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(_STUCK) as pool:
            for _ in range(_STUCK):
                pool.submit(asked.another().get, path)
            time.sleep(1.0)  # until they wait
            try:
                yield
            finally:
                os.kill(pid, signal.SIGCONT)  # those who wait for it come to an end
    finally:
        os.kill(pid, signal.SIGCONT)


def beside(side: Side, path: str, *, pid: int, asked: LeanClient, dead: str) -> dict[str, float]:
    """The p99 of a side with everybody alive, and while the server of `pid` is dead and asked for the path `dead`."""
    p99(side, path)
    alive = p99(side, path)
    with silent(pid, asked, dead):
        during = p99(side, path)
    return {"p99_alive_ms": alive, "p99_beside_ms": during, "ratio": during / alive}
