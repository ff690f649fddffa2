"""The control API: HTTP on a unix socket that only the supervisor's own user and root may use.

The permissions of the socket refuse other users. The credentials of the peer (SO_PEERCRED) are checked as well, in case
the permissions were changed. An error is an HTTP status with a sentence as its body; `errors.py` has the list.

    GET    /v1/health
    GET    /v1/processes?selector=…     status
    PUT    /v1/processes                takes a list of specifications; starts new processes and restarts changed ones
    DELETE /v1/processes?selector=…     stops processes and deletes their specifications
    POST   /v1/{start,stop,restart}?selector=…
    GET    /v1/wait?selector=…&timeout= long poll until all are ready; answers with those that are not ready
    GET    /v1/logs?name=…&lines=
    POST   /v1/ports?owner=…            takes a list of names; answers with a port for each
    DELETE /v1/ports?owner=…
    POST   /v1/shutdown
"""

import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog
from aiohttp import web

from kairship.supervisor.client import SCOPE_HEADER, TERM_HEADER
from kairship.supervisor.errors import InvalidSpec, PermissionDenied, SupervisorError
from kairship.supervisor.paths import Layout
from kairship.supervisor.spec import MIB, Health, ProcessSpec, Term
from kairship.supervisor.supervisor import Supervisor

log = structlog.get_logger()

VERSION = version("kairship")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")


class ControlApi:
    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/health", self._health),
            web.get("/v1/processes", self._status),
            web.put("/v1/processes", self._put),
            web.delete("/v1/processes", self._changing(self._supervisor.delete)),
            web.post("/v1/start", self._changing(self._supervisor.start)),
            web.post("/v1/stop", self._changing(self._supervisor.stop)),
            web.post("/v1/restart", self._changing(self._supervisor.restart)),
            web.get("/v1/wait", self._wait),
            web.get("/v1/logs", self._logs),
            web.post("/v1/ports", self._allocate_ports),
            web.delete("/v1/ports", self._release_ports),
            web.post("/v1/shutdown", self._shutdown),
        ]

    async def _health(self, request: web.Request) -> web.Response:
        closing = self._supervisor.closing.is_set()
        return _reply(Health(version=VERSION, pid=os.getpid(), shutting_down=closing))

    async def _status(self, request: web.Request) -> web.Response:
        measured = "measured" in request.query
        return _reply(await self._supervisor.status(_selectors(request), measured=measured))

    async def _put(self, request: web.Request) -> web.Response:
        specs = await _body(request, list[ProcessSpec])
        await self._admit(request)
        return _reply(await self._supervisor.put(specs))

    def _changing(self, act: Callable[[Sequence[str]], Awaitable[None]]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            await self._admit(request)
            selectors = _selectors(request)
            log.info("change requested", method=request.method, path=request.path, selectors=selectors)
            await act(selectors)
            return _reply(None)

        return handle

    async def _wait(self, request: web.Request) -> web.Response:
        timeout = _number(request, "timeout", float)
        return _reply(await self._supervisor.wait(_selectors(request), timeout=timeout))

    async def _logs(self, request: web.Request) -> web.Response:
        return _reply(await self._supervisor.logs(_parameter(request, "name"), lines=_number(request, "lines", int)))

    async def _allocate_ports(self, request: web.Request) -> web.Response:
        names = await _body(request, list[str])
        await self._admit(request)
        return _reply(await self._supervisor.allocate_ports(_parameter(request, "owner"), names))

    async def _release_ports(self, request: web.Request) -> web.Response:
        await self._admit(request)
        await self._supervisor.release_ports(_parameter(request, "owner"))
        return _reply(None)

    async def _shutdown(self, request: web.Request) -> web.Response:
        await self._admit(request)
        self._supervisor.closing.set()
        return _reply(None)

    async def _admit(self, request: web.Request) -> None:
        await self._supervisor.admit(_term(request))


@asynccontextmanager
async def serving(supervisor: Supervisor, layout: Layout) -> AsyncIterator[None]:
    """Serve the control API inside the `with`."""
    app = web.Application(middlewares=[_own_user_only, _errors_as_text], client_max_size=16 * MIB)
    app.add_routes(ControlApi(supervisor).routes())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    with layout.socket_address() as address, socket.socket(socket.AF_UNIX) as listener:
        _remove(address)  # a supervisor that was killed may have left it; the lock shows that it is not in use
        previous = os.umask(0o177)
        try:
            listener.bind(address)
        finally:
            os.umask(previous)
        await web.SockSite(runner, listener).start()
        try:
            yield
        finally:
            _remove(address)
            await runner.cleanup()


def is_trusted(uid: int) -> bool:
    return uid in (0, os.geteuid())


@web.middleware
async def _own_user_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    connection = request.get_extra_info("socket")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    if not is_trusted(uid):
        log.warning("refused a caller", uid=uid, pid=pid)
        return web.Response(status=PermissionDenied.status, text=f"user {uid} may not control this supervisor")
    return await handler(request)


@web.middleware
async def _errors_as_text(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except SupervisorError as error:
        return web.Response(status=error.status, text=str(error))
    except OSError as error:
        log.exception("a call failed", method=request.method, path=request.path)
        return web.Response(status=SupervisorError.status, text=f"the supervisor failed: {error}")


def _reply(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


async def _body(request: web.Request, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except msgspec.DecodeError as error:
        raise InvalidSpec(f"the request body cannot be decoded: {error}") from error


def _selectors(request: web.Request) -> list[str]:
    return request.query.getall("selector", [])


def _parameter(request: web.Request, name: str) -> str:
    if value := request.query.get(name):
        return value
    raise InvalidSpec(f"the parameter {name} is missing")


def _number(request: web.Request, name: str, kind: Callable[[str], T]) -> T:
    try:
        return kind(_parameter(request, name))
    except ValueError as error:
        raise InvalidSpec(f"the parameter {name} must be a number") from error


def _term(request: web.Request) -> Term | None:
    scope, number = request.headers.get(SCOPE_HEADER), request.headers.get(TERM_HEADER)
    if scope is None and number is None:
        return None
    if not scope or number is None or not number.isdecimal():
        raise InvalidSpec(f"send both headers, {SCOPE_HEADER} with a name and {TERM_HEADER} with a number, or neither")
    return Term(scope, int(number))


def _remove(address: str) -> None:
    Path(address).unlink(missing_ok=True)
