"""Readiness probes of processes. A check returns None, or the reason why the process is not ready. It never raises an
exception and never hangs."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp

from kairship.supervisor.spec import HttpProbe, TcpProbe

TIMEOUT = 2.0
SETTLED = 0.5
"""Seconds after which a process without a probe counts as ready: with wrong flags it exits sooner."""

Check = Callable[[], Awaitable[str | None]]


@asynccontextmanager
async def checking(probe: HttpProbe | TcpProbe | None) -> AsyncIterator[Check]:
    """A check for one run of a process. It keeps its connection between calls and reads the CA file once."""
    if probe is None:
        yield _check_survival
        return
    if isinstance(probe, TcpProbe):
        yield lambda: _check_tcp(probe)
        return
    try:
        trust = ssl.create_default_context(cafile=probe.ca_file) if probe.url.startswith("https:") else True
    except OSError as error:
        problem = f"cannot use the CA file {probe.ca_file}: {error}"

        async def report_problem() -> str:
            return problem

        yield report_problem
        return
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust, limit=1), timeout=aiohttp.ClientTimeout(total=TIMEOUT)
    ) as session:
        yield lambda: _check_http(session, probe)


async def _check_survival() -> None:
    await asyncio.sleep(SETTLED)


async def _check_http(session: aiohttp.ClientSession, probe: HttpProbe) -> str | None:
    try:
        async with session.get(probe.url, allow_redirects=False) as response:
            body = await response.content.read(16 * 1024)
    except TimeoutError:
        return f"{probe.url} did not answer within {TIMEOUT:g} s"
    except (OSError, ValueError, aiohttp.ClientError) as error:
        return f"{probe.url}: {_problem(error)}"
    if response.status == probe.status:
        return None
    return f"{probe.url} answered {response.status}{_excerpt(body)}"


async def _check_tcp(probe: TcpProbe) -> str | None:
    try:
        async with asyncio.timeout(TIMEOUT):
            _, writer = await asyncio.open_connection(probe.host, probe.port)
    except TimeoutError:
        return f"{probe.host}:{probe.port} did not answer within {TIMEOUT:g} s"
    except (OSError, ValueError) as error:
        return f"{probe.host}:{probe.port}: {_problem(error)}"
    writer.close()
    return None


def _problem(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return "connection refused" if isinstance(cause, ConnectionRefusedError) else str(error) or repr(error)


def _excerpt(body: bytes) -> str:
    """The reason in the body of a reply. Kubernetes servers list every check and mark the failed ones with `[-]`."""
    lines = [line.strip() for line in body.decode(errors="replace").splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith("[-]")] or lines[:1]
    return f": {', '.join(failed)[:300]}" if failed else ""
