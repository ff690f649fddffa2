"""Asking a process whether it is ready. A check answers None, or in words why not; it never raises and never hangs."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp

from kairship.supervisor.spec import HttpProbe, TcpProbe

TIMEOUT = 2.0
SETTLED = 0.5
"""Seconds of life after which a process without a probe counts as ready: wrong flags show sooner."""

Check = Callable[[], Awaitable[str | None]]


@asynccontextmanager
async def checking(probe: HttpProbe | TcpProbe | None) -> AsyncIterator[Check]:
    """A check for one run of a process: its connection is kept between checks, its CA file is read once."""
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

        async def complain() -> str:
            return problem

        yield complain
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
    """What the server says is wrong. Kubernetes servers list every check, the failed ones marked `[-]`."""
    lines = [line.strip() for line in body.decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("[-]")] or lines[:1]
    return f": {', '.join(telling)[:300]}" if telling else ""
