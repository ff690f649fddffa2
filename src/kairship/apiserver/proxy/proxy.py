"""One request of a Kubernetes client, from its first byte to its last.

    authentication → what it asks for → rights → its turn among callers → passed on in the caller's name → back

Replies are passed on as they come, piece by piece: a slow reader slows its source, and nothing is held here. A reply
that breaks off is broken off for the caller too, never ended as if it were whole. Redirects are not followed and not
passed on. Streams are ended by us when their caller loses the right to them: the instance would leave them running.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol
from urllib.parse import parse_qsl

import msgspec
import structlog
from aiohttp import web
from multidict import CIMultiDict

from kairship.apiserver.admission import Admission, CallerId
from kairship.apiserver.authentication import Authenticator
from kairship.apiserver.bodies import Bodies
from kairship.apiserver.limits import Limits
from kairship.apiserver.proxy import headers, statuses
from kairship.apiserver.proxy.asking import Asked, AskedPath, asked, is_set
from kairship.apiserver.proxy.figures import Figures
from kairship.apiserver.proxy.rights import Admitted, ProxyRights
from kairship.apiserver.proxy.target import Target
from kairship.apiserver.proxy.tunnel import Tunnel
from kairship.apiserver.streams import Streams
from kairship.instances.pool import NotConnected, Reason
from kairship.kube import Client, Refused
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import ApiError, Internal, NotFound, Unavailable, of_exception

SOURCE = "X-Kairship-Source"
_INSTANCE = "instance"
_LONGEST_WATCH = 3600.0
_SILENCE = 60.0
"""Seconds in which some part of a reply must come that is not a stream."""
_LAST_WORDS = 5.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})

log = structlog.get_logger("kairship.proxy")


class Instances(Protocol):
    def instance(self, name: str) -> Client: ...


class _Passing(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was let in."""

    request: web.BaseRequest
    target: Target
    asked: Asked | AskedPath
    parameters: dict[str, str]
    query: str
    caller: Caller
    admitted: Admitted
    envelope: Envelope

    @property
    def upstream(self) -> str:
        return f"{self.target.upstream}?{self.query}" if self.query else self.target.upstream

    @property
    def verb(self) -> str:
        return self.asked.attributes.verb if isinstance(self.asked, Asked) else "discover"

    @property
    def lasts(self) -> bool:
        """Whether the reply goes on for as long as the caller wants: a watch, or logs that are followed."""
        if isinstance(self.asked, AskedPath):
            return False
        follows = self.asked.attributes.subresource == "log" and is_set(self.parameters, "follow")
        return self.asked.watches or follows

    @property
    def longest_silence(self) -> float:
        if not self.lasts:
            return _SILENCE
        try:
            return min(_LONGEST_WATCH, float(self.parameters.get("timeoutSeconds", _LONGEST_WATCH))) + 30.0
        except ValueError:
            return _LONGEST_WATCH


class Behind(msgspec.Struct, frozen=True):
    """What the proxy leads to, and who may go there."""

    instances: Instances
    rights: ProxyRights


class Proxy:
    def __init__(
        self,
        behind: Behind,
        *,
        authenticator: Authenticator,
        admission: Admission,
        streams: Streams,
        limits: Limits,
        figures: Figures,
    ) -> None:
        self._instances = behind.instances
        self._rights = behind.rights
        self._authenticator = authenticator
        self._admission = admission
        self._streams = streams
        self._limits = limits
        self._bodies = Bodies(limits)
        self._figures = figures

    async def handle(
        self, request: web.BaseRequest, target: Target, query: str, envelope: Envelope
    ) -> web.StreamResponse:
        """Whatever happens is the reply; nothing is raised but cancellation."""
        started = time.monotonic()
        response: web.StreamResponse | None = None
        passing: _Passing | None = None
        try:
            passing = await self._let_in(request, target, query, envelope)
            response = await self._serve(passing)
        except Exception as error:  # noqa: BLE001 - each is told to the caller, and defects to the log
            told = of_exception(error, request_id=envelope.request_id)
            if isinstance(told, Internal):
                log.error("defect", request_id=envelope.request_id, error=type(error).__qualname__)
            response = refusal(told, envelope.request_id)
        finally:
            status = response.status if response is not None else 499
            verb = passing.verb if passing is not None else "other"
            seconds = time.monotonic() - started
            self._figures.count(verb, _INSTANCE, status, seconds)
            log.info(
                "request",
                request_id=envelope.request_id,
                caller=passing.caller.id if passing else None,
                origin=envelope.origin,
                instance=target.instance,
                cluster=target.cluster,
                method=request.method,
                path=target.path,
                status=status,
                seconds=round(seconds, 6),
            )
        return response

    async def _let_in(self, request: web.BaseRequest, target: Target, query: str, envelope: Envelope) -> _Passing:
        caller = await self._authenticator.authenticate(envelope)
        headers.require_oneself(request.headers)
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        wanted = asked(request.method, target.path, parameters)
        return _Passing(
            request=request,
            target=target,
            asked=wanted,
            parameters=parameters,
            query=query,
            caller=caller,
            admitted=self._rights.admit(caller, target, wanted),
            envelope=envelope,
        )

    async def _serve(self, passing: _Passing) -> web.StreamResponse:
        request = passing.request
        if request.method not in _METHODS:
            return refusal(NotFound("there is no such method"), passing.envelope.request_id, status=405)
        if request.headers.get("Upgrade"):
            async with self._stream(passing):
                return await self._tunnel(passing)
        turn: AbstractAsyncContextManager[None] = self._stream(passing) if passing.lasts else self._turn(passing)
        async with turn, self._bodies.received(request) as body:
            return await self._pass_on(passing, body)

    async def _pass_on(self, passing: _Passing, body: bytes) -> web.StreamResponse:
        client = self._client(passing)
        going = headers.going_there(passing.request.headers)
        going["X-Request-Id"] = passing.envelope.request_id
        # A watch that is to begin with what there is may take its time to begin.
        patience = self._limits.write_seconds if passing.lasts else self._limits.read_seconds
        async with client.stream(
            passing.request.method,
            passing.upstream,
            body=body if passing.request.body_exists else None,
            headers=going,
            timeout=patience,
        ) as upstream:
            if 300 <= upstream.status < 400 and upstream.status != 304:
                raise Unavailable("the cluster behind this answered with a redirect, which is not followed")
            response = web.StreamResponse(status=upstream.status, headers=headers.coming_back(upstream.headers))
            _mark(response, passing.envelope.request_id)
            try:
                await response.prepare(passing.request)
                async for chunk in upstream.chunks(inactivity_timeout=passing.longest_silence):
                    await self._write(response, chunk)
                await response.write_eof()
            except BaseException:
                # Ended in order, it would look whole.
                if passing.request.transport is not None:
                    passing.request.transport.abort()
                raise
            return response

    async def _write(self, response: web.StreamResponse, chunk: bytes) -> None:
        async with asyncio.timeout(self._limits.stalled_seconds):
            await response.write(chunk)

    async def _tunnel(self, passing: _Passing) -> web.StreamResponse:
        client = self._client(passing)
        going = headers.upgrade_going_there(passing.request.headers)
        going["X-Request-Id"] = passing.envelope.request_id
        answer = await client.upgrade(
            passing.request.method, passing.upstream, headers=going, timeout=self._limits.read_seconds
        )
        if isinstance(answer, Refused):
            return _refused_upgrade(answer, passing.envelope.request_id)
        near = passing.request.transport
        if near is None or near.is_closing():
            answer.abort()
            raise Unavailable("the caller went away")
        tunnel = Tunnel(passing.request.protocol)
        try:
            back = headers.upgrade_coming_back(answer.headers, passing.request.headers["Upgrade"])
            near.write(_switching(back))
            near.set_protocol(tunnel.near)
            tunnel.near.connection_made(near)
            answer.hand_over(tunnel.far)
            await tunnel.ended.wait()
        except BaseException:
            tunnel.abort()
            raise
        asyncio.get_running_loop().call_later(_LAST_WORDS, tunnel.abort)
        return web.Response(status=101)

    def _client(self, passing: _Passing) -> Client:
        try:
            client = self._instances.instance(passing.target.instance)
        except NotConnected as refusal:
            if refusal.reason is Reason.UNKNOWN:
                raise NotFound(f"there is no instance {passing.target.instance}") from None
            raise Unavailable(f"{refusal}; see the conditions of the instance", retry_after=2.0) from None
        return client.impersonating(passing.admitted.identity)

    @asynccontextmanager
    async def _turn(self, passing: _Passing) -> AsyncIterator[None]:
        caller = CallerId(passing.caller.id)
        await self._admission.enter(caller)
        try:
            yield
        finally:
            self._admission.leave(caller)

    def _stream(self, passing: _Passing) -> AbstractAsyncContextManager[None]:
        return self._streams.opened(CallerId(passing.caller.id), self._objection(passing))

    def _objection(self, passing: _Passing) -> Callable[[], ApiError | None]:
        """Why a stream must not go on: what was granted must still be."""

        def ask() -> ApiError | None:
            try:
                now = self._rights.admit(passing.caller, passing.target, passing.asked)
            except ApiError as error:
                return error
            if passing.admitted.granted and not now.granted:
                return Unavailable("your rights have changed; call again", retry_after=1.0)
            return None

        return ask


def _mark(response: web.StreamResponse, request_id: str) -> None:
    response.headers[SOURCE] = _INSTANCE
    response.headers["X-Request-Id"] = request_id
    response.headers["X-Content-Type-Options"] = "nosniff"


def refusal(error: ApiError, request_id: str, *, status: int | None = None) -> web.Response:
    response = web.Response(
        body=statuses.status_of(error), status=status or error.http_status, content_type="application/json"
    )
    response.headers["X-Request-Id"] = request_id
    response.headers["Cache-Control"] = "no-cache, private"
    pause = statuses.retry_seconds(error)
    if pause is not None:
        response.headers["Retry-After"] = str(pause)
    return response


def _refused_upgrade(answer: Refused, request_id: str) -> web.Response:
    if 300 <= answer.status < 400 or answer.status < 200:
        raise Unavailable("the cluster behind this did not agree, and led elsewhere; that is not followed")
    back = headers.coming_back(CIMultiDict(answer.headers))
    back.popall("Content-Length", None)
    response = web.Response(body=answer.body, status=answer.status, headers=back)
    _mark(response, request_id)
    return response


def _switching(back: CIMultiDict[str]) -> bytes:
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in back.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise Unavailable("the cluster behind this did not answer properly")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
