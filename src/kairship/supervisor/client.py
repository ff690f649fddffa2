"""A typed client of the control socket.

Each call opens its own connection. Calls are rare, and so a client has nothing to close and works across a restart of
the supervisor.
"""

from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import TypeVar

import aiohttp
import msgspec

from kairship.supervisor.errors import BY_STATUS, NotReady, NotRunning, SupervisorError
from kairship.supervisor.paths import Layout
from kairship.supervisor.spec import Health, ProcessSpec, ProcessStatus, Term, Unready

SCOPE_HEADER = "X-Kairship-Scope"
TERM_HEADER = "X-Kairship-Term"

_QUICK = 15.0
_STOPPING = 300.0  # the specifications limit how long a stop takes; this only ends a call that hangs

T = TypeVar("T")


class SupervisorClient:
    """Calls the supervisor of one data directory.

    If it has a `term`, its changes are refused once a later holder of the lease has called.
    """

    def __init__(self, data_dir: Path | str, term: Term | None = None) -> None:
        self._layout = Layout.of(data_dir)
        self._headers = {SCOPE_HEADER: term.scope, TERM_HEADER: str(term.number)} if term else {}

    async def health(self) -> Health:
        return await self._call("GET", "health", Health)

    async def put(self, *specs: ProcessSpec) -> list[str]:
        """Store and run these processes. Returns the names of those that are new or have changed.

        This does not wait until they run; `wait_ready` does. A process that a caller has stopped takes the new
        specification and stays stopped.
        """
        return await self._call("PUT", "processes", list[str], body=specs)

    async def delete(self, *names: str) -> None:
        """Stop these processes and delete their specifications. Returns when they are gone. Ignores unknown names."""
        await self._call("DELETE", "processes", NoneType, selectors=names, timeout=_STOPPING)

    async def delete_group(self, group: str) -> None:
        await self._call("DELETE", "processes", NoneType, selectors=(group,), timeout=_STOPPING)

    async def start(self, *selectors: str) -> None:
        """Start processes that are stopped or in backoff, without a delay. Does not wait until they are ready."""
        await self._call("POST", "start", NoneType, selectors=selectors)

    async def stop(self, *selectors: str) -> None:
        """Stop processes, which then stay stopped. Returns when they are gone."""
        await self._call("POST", "stop", NoneType, selectors=selectors, timeout=_STOPPING)

    async def restart(self, *selectors: str) -> None:
        """Restart processes, and start those that are stopped. Returns when the old processes are gone."""
        await self._call("POST", "restart", NoneType, selectors=selectors, timeout=_STOPPING)

    async def status(self, selector: str | None = None, *, measured: bool = False) -> list[ProcessStatus]:
        """The selected processes, or all, sorted by name. CPU and memory are included only if `measured`."""
        return await self._call(
            "GET",
            "processes",
            list[ProcessStatus],
            selectors=() if selector is None else (selector,),
            query={"measured": ""} if measured else None,
        )

    async def wait_ready(self, *selectors: str, timeout: float) -> None:
        """Return when all selected processes are ready. Raises `NotReady` after `timeout`.

        It is raised earlier if waiting is pointless because a process, or one that it comes after, is stopped or keeps
        dying.
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
        """The last lines of a process's log, oldest first."""
        return await self._call("GET", "logs", list[str], query={"name": name, "lines": str(lines)})

    async def allocate_ports(self, owner: str, names: Sequence[str]) -> dict[str, int]:
        """A port for each name. The same owner gets the same ports every time."""
        return await self._call("POST", "ports", dict[str, int], query={"owner": owner}, body=names)

    async def release_ports(self, owner: str) -> None:
        await self._call("DELETE", "ports", NoneType, query={"owner": owner})

    async def shutdown(self) -> None:
        """Make the supervisor stop everything and exit. Returns at once; `daemon.stop` waits until it has exited."""
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
