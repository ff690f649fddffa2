"""A typed client of the control socket.

Each call opens a connection of its own: calls are few, and so there is nothing to close and nothing that goes stale
when the supervisor is restarted in between.
"""

from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import TypeVar

import aiohttp
import msgspec

from kairship.supervisor.errors import BY_STATUS, NotReady, NotRunning, SupervisorError
from kairship.supervisor.layout import Layout
from kairship.supervisor.spec import Health, ProcessSpec, ProcessStatus, Term, Unready

SCOPE_HEADER = "X-Kairship-Scope"
TERM_HEADER = "X-Kairship-Term"

_QUICK = 15.0
_STOPPING = 300.0  # the specifications bound how long a stop lasts; this only ends a wedged call

T = TypeVar("T")


class SupervisorClient:
    """Talks to the supervisor of one data directory.

    With a `term`, its changes are refused once a later holder of the lease has called.
    """

    def __init__(self, data_dir: Path | str, term: Term | None = None) -> None:
        self._layout = Layout.of(data_dir)
        self._headers = {SCOPE_HEADER: term.scope, TERM_HEADER: str(term.number)} if term else {}

    async def health(self) -> Health:
        return await self._call("GET", "health", Health)

    async def put(self, *specs: ProcessSpec) -> list[str]:
        """Remember and run these processes; returns the names of those that were new or had changed.

        Does not wait until they run: that is `wait_ready`. A process that was stopped on request takes the new
        specification and stays stopped.
        """
        return await self._call("PUT", "processes", list[str], body=specs)

    async def delete(self, *names: str) -> None:
        """Stop these processes and forget them; returns when they are gone. Unknown ones are gone already."""
        await self._call("DELETE", "processes", NoneType, selectors=names, timeout=_STOPPING)

    async def delete_group(self, group: str) -> None:
        await self._call("DELETE", "processes", NoneType, selectors=(group,), timeout=_STOPPING)

    async def start(self, *selectors: str) -> None:
        """Start what was stopped, and at once what is in backoff. Does not wait for readiness."""
        await self._call("POST", "start", NoneType, selectors=selectors)

    async def stop(self, *selectors: str) -> None:
        """Stop, and remember that; returns when the processes are gone."""
        await self._call("POST", "stop", NoneType, selectors=selectors, timeout=_STOPPING)

    async def restart(self, *selectors: str) -> None:
        """Stop and start again, stopped ones too; returns when the old processes are gone."""
        await self._call("POST", "restart", NoneType, selectors=selectors, timeout=_STOPPING)

    async def status(self, selector: str | None = None, *, measured: bool = False) -> list[ProcessStatus]:
        """All processes, or those selected, in the order of their names. What they use is told only if asked for."""
        return await self._call(
            "GET",
            "processes",
            list[ProcessStatus],
            selectors=() if selector is None else (selector,),
            query={"measured": ""} if measured else None,
        )

    async def wait_ready(self, *selectors: str, timeout: float) -> None:
        """Return when all are ready; raise NotReady at the deadline.

        It comes earlier when waiting is pointless: a process, or one that it comes after, is stopped or keeps dying.
        """
        unready = await self._call(
            "GET",
            "wait",
            tuple[Unready, ...],
            selectors=selectors,
            query={"timeout": str(timeout)},
            timeout=timeout + _QUICK,
        )
        if unready:
            raise NotReady(unready)

    async def logs(self, name: str, *, lines: int = 100) -> list[str]:
        """The last lines that a process wrote, oldest first."""
        return await self._call("GET", "logs", list[str], query={"name": name, "lines": str(lines)})

    async def allocate_ports(self, owner: str, names: Sequence[str]) -> dict[str, int]:
        """A port for each name, the same ones each time this owner asks."""
        return await self._call("POST", "ports", dict[str, int], query={"owner": owner}, body=names)

    async def release_ports(self, owner: str) -> None:
        await self._call("DELETE", "ports", NoneType, query={"owner": owner})

    async def shutdown(self) -> None:
        """Ask the supervisor to stop everything and exit; it answers at once. `daemon.stop` waits for the end."""
        await self._call("POST", "shutdown", NoneType)

    async def _call(
        self,
        method: str,
        path: str,
        reply: type[T],
        *,
        selectors: Sequence[str] = (),
        query: dict[str, str] | None = None,
        body: object = None,
        timeout: float = _QUICK,
    ) -> T:
        parameters = [*(query or {}).items(), *(("selector", selector) for selector in selectors)]
        content = None if body is None else msgspec.json.encode(body)
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            with self._layout.socket_address() as address:
                async with (
                    aiohttp.ClientSession(connector=aiohttp.UnixConnector(address), headers=self._headers) as session,
                    session.request(
                        method, f"http://supervisor/v1/{path}", params=parameters, data=content, timeout=limit
                    ) as response,
                ):
                    status, answer = response.status, await response.read()
        except TimeoutError as error:
            raise SupervisorError(f"the supervisor did not answer {method} {path} within {timeout:g} s") from error
        except (OSError, aiohttp.ClientError) as error:
            raise NotRunning(f"no supervisor answers for {self._layout.data_dir}: {error}") from error
        if status >= 400:
            raise BY_STATUS.get(status, SupervisorError)(answer.decode(errors="replace"))
        return msgspec.json.decode(answer, type=reply)
