"""Measures the effect of an unresponsive member or instance on other requests: its API server is stopped while many
requests are sent to it.

The same client sends these requests and those that are measured, because it is affected most.
"""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from lean_client import LeanClient
from proxied.side import Side

_STUCK = 64
_TIMES = 400


def p99(side: Side, path: str) -> float:
    """The p99 in milliseconds."""
    return sorted(side.get(path).seconds for _ in range(_TIMES))[int(_TIMES * 0.99) - 1] * 1e3


@contextmanager
def silent(pid: int, asked: LeanClient, path: str) -> Iterator[None]:
    """Stops a server, so that it accepts connections and does not answer, and sends it many requests."""
    with ThreadPoolExecutor(_STUCK) as pool:
        os.kill(pid, signal.SIGSTOP)
        try:
            for _ in range(_STUCK):
                pool.submit(asked.another().get, path)
            time.sleep(1.0)  # until the requests wait for the server
            yield
        finally:
            with suppress(ProcessLookupError):  # the supervisor may have killed it meanwhile
                os.kill(pid, signal.SIGCONT)  # now the waiting requests end


def beside(side: Side, path: str, *, pid: int, asked: LeanClient, dead: str) -> dict[str, float]:
    """The p99 of a side while all servers run, and while the server of `pid` hangs and the path `dead` is requested."""
    p99(side, path)
    alive = p99(side, path)
    with silent(pid, asked, dead):
        during = p99(side, path)
    return {"p99_alive_ms": alive, "p99_beside_ms": during, "ratio": during / alive}
