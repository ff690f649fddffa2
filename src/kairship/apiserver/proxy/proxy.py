"""One request of a Kubernetes client, from its first byte to its last.

    authentication → what it asks for → rights → its turn among callers → from the index,
                                                                        or passed on in the caller's name → back

Replies are passed on as they come, piece by piece: a slow reader slows its source, and nothing is held here but the
short replies to writes, until they are noted. Redirects are not followed and not passed on. Streams are ended by us
when their caller loses the right to them: the instance would leave them running.
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

from kairship.apiserver.admission import RETRY_AFTER, Admission, CallerId
from kairship.apiserver.authentication import Authenticator
from kairship.apiserver.authorisation import require_same_page
from kairship.apiserver.bodies import Bodies
from kairship.apiserver.limits import Limits
from kairship.apiserver.proxy import headers, replies
from kairship.apiserver.proxy.asking import asked
from kairship.apiserver.proxy.auditing import ProxyAudit
from kairship.apiserver.proxy.figures import Figures
from kairship.apiserver.proxy.indexed import IndexedReads
from kairship.apiserver.proxy.noting import NotedWrites
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.proxy.rights import ProxyRights, is_delicate
from kairship.apiserver.proxy.sending import Sender, compresses
from kairship.apiserver.proxy.silence import SLOW, Silences
from kairship.apiserver.proxy.target import Target
from kairship.apiserver.proxy.tunnel import Tunnel
from kairship.apiserver.services.reach import Reach
from kairship.apiserver.streams import Streams
from kairship.index import PageTokens, PassThrough
from kairship.kube import Client, ConnectFailed, Refused, TimedOut, TransportError
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.defects import log_defect
from kairship.rpc.errors import ApiError, Internal, NotFound, ResourceExhausted, Unavailable, of_exception

_LAST_WORDS = 5.0
_REPEATABLE = frozenset({"get", "list", "watch", "discover"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})

log = structlog.get_logger("kairship.proxy")


class Vouching(Protocol):
    def objection_to(self, caller: Caller, *, delicate: bool) -> ApiError | None:
        """Why somebody who was authenticated must not go on."""
        ...


class Behind(msgspec.Struct, frozen=True, kw_only=True):
    """What the proxy leads to, who may go there, and where it is written down."""

    instances: Reach
    rights: ProxyRights
    callers: Vouching
    audit: ProxyAudit
    reads: IndexedReads
    writes: NotedWrites


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
        self._callers = behind.callers
        self._audit = behind.audit
        self._reads = behind.reads
        self._writes = behind.writes
        self._authenticator = authenticator
        self._admission = admission
        self._streams = streams
        self._limits = limits
        self._bodies = Bodies(limits)
        self._sender = Sender(limits)
        self._figures = figures
        self._silences = Silences()

    async def handle(
        self, request: web.BaseRequest, target: Target, query: str, envelope: Envelope
    ) -> web.StreamResponse:
        """Whatever happens is the reply; nothing is raised but cancellation."""
        started = time.monotonic()
        response: web.StreamResponse | None = None
        passing: Passing | None = None
        try:
            passing = await self._let_in(request, target, query, envelope)
            response = await self._audited(passing)
        except Exception as error:  # noqa: BLE001 - each is told to the caller, and defects to the log
            told = _told(error, passing, envelope.request_id)
            if isinstance(told, Internal):
                log_defect(log, error, "Proxy", envelope.request_id)
            response = replies.refusal(told, envelope.request_id)
        finally:
            status = response.status if response is not None else 499
            verb = passing.verb if passing is not None else "other"
            seconds = time.monotonic() - started
            source = replies.source_of(response)
            self._figures.count(verb, source, status, seconds)
            log.info(
                "request",
                request_id=envelope.request_id,
                caller=passing.caller.id if passing else None,
                origin=envelope.origin,
                instance=target.instance,
                cluster=target.cluster,
                method=request.method,
                path=target.path,
                source=source,
                status=status,
                seconds=round(seconds, 6),
            )
        return response

    async def _let_in(self, request: web.BaseRequest, target: Target, query: str, envelope: Envelope) -> Passing:
        caller = await self._authenticator.authenticate(envelope)
        if envelope.csrf is not None:
            require_same_page(caller, envelope.csrf)
        headers.require_oneself(request.headers)
        headers.require_own_page(request.headers)
        pairs = parse_qsl(query, keep_blank_values=True)
        # The first of several is the one that API servers look at.
        parameters = dict(reversed(pairs))
        wanted = asked(request.method, target.path, parameters)
        try:
            if objection := self._callers.objection_to(caller, delicate=is_delicate(wanted)):
                raise objection
            admitted = self._rights.admit(caller, target, wanted)
        except ApiError as error:
            self._audit.refused(caller, target, wanted, envelope, error.http_status)
            raise
        return Passing(
            request=request,
            target=target,
            asked=wanted,
            parameters=parameters,
            repeats=len(parameters) < len(pairs),
            query=query,
            caller=caller,
            admitted=admitted,
            envelope=envelope,
        )

    async def _audited(self, passing: Passing) -> web.StreamResponse:
        begun = await self._audit.before(passing.caller, passing.target, passing.asked, passing.envelope)
        if begun is None:
            return await self._serve(passing)
        status = 499  # unless it ends otherwise
        try:
            response = await self._serve(passing)
            status = response.status
        except Exception as error:
            status = of_exception(error).http_status
            raise
        finally:
            self._audit.after(begun, status)
        return response

    async def _serve(self, passing: Passing) -> web.StreamResponse:
        request = passing.request
        if request.method not in _METHODS:
            return replies.refusal(NotFound("there is no such method"), passing.envelope.request_id, status=405)
        if request.headers.get("Upgrade"):
            async with self._stream(passing), self._listened_to(passing):
                return await self._tunnel(passing)
        turn: AbstractAsyncContextManager[None] = self._stream(passing) if passing.lasts else self._turn(passing)
        async with turn, self._bodies.received(request) as body:
            try:
                return await self._from_index(passing)
            except PassThrough as reason:
                log.debug("passed on", request_id=passing.envelope.request_id, reason=str(reason))
            if PageTokens.is_ours(passing.parameters.get("continue", "")):
                return replies.expired(passing.envelope.request_id)
            async with self._listened_to(passing):
                return await self._pass_on(passing, body)

    async def _from_index(self, passing: Passing) -> web.StreamResponse:
        """Raises `PassThrough` before anything is sent."""
        request = passing.request
        async with self._reads.answer(passing, lambda: self._client(passing)) as answer:
            at_once = answer.whole is not None and not compresses(request, len(answer.whole))
            response = replies.of_index(answer, passing.envelope.request_id, at_once=at_once)
            if at_once:
                return response
            send = self._sender.send if passing.lasts else self._sender.send_list
            return await send(request, response, answer.body)

    async def _pass_on(self, passing: Passing, body: bytes) -> web.StreamResponse:
        client = self._client(passing)
        going = headers.going_there(passing.request.headers)
        going["X-Request-Id"] = passing.envelope.request_id
        noted = self._writes.concerns(passing)
        if noted:
            going["Accept-Encoding"] = "identity"  # what it says has to be read
        asked_at = time.monotonic()
        # A watch that is to begin with what there is may take its time to begin.
        patience = self._limits.write_seconds if passing.lasts else self._limits.read_seconds
        async with client.stream(
            passing.request.method,
            passing.upstream,
            body=body if passing.request.body_exists else None,
            headers=going,
            timeout=patience,
        ) as upstream:
            self._note_answer(passing, upstream.status, time.monotonic() - asked_at)
            if 300 <= upstream.status < 400 and upstream.status != 304:
                raise Unavailable("the cluster behind this answered with a redirect, which is not followed")
            response = web.StreamResponse(status=upstream.status, headers=headers.coming_back(upstream.headers))
            replies.mark(response, passing.envelope.request_id)
            pieces = upstream.chunks(inactivity_timeout=passing.longest_silence)
            if noted and upstream.status < 300:
                pieces, is_noted = await self._writes.noted(passing, upstream.headers, pieces)
                if not is_noted:
                    response.headers.add("Warning", replies.NOT_NOTED)
            return await self._sender.send(passing.request, response, pieces)

    async def _tunnel(self, passing: Passing) -> web.StreamResponse:
        client = self._client(passing)
        going = headers.upgrade_going_there(passing.request.headers)
        going["X-Request-Id"] = passing.envelope.request_id
        answer = await client.upgrade(
            passing.request.method, passing.upstream, headers=going, timeout=self._limits.read_seconds
        )
        self._silences.answered(passing.place)
        if isinstance(answer, Refused):
            return replies.refused_upgrade(answer, passing.envelope.request_id)
        near = passing.request.transport
        if near is None or near.is_closing():
            answer.abort()
            raise Unavailable("the caller went away")
        tunnel = Tunnel(passing.request.protocol)
        try:
            back = headers.upgrade_coming_back(answer.headers, passing.request.headers["Upgrade"])
            near.write(replies.switching(back))
            near.set_protocol(tunnel.near)
            tunnel.near.connection_made(near)
            answer.hand_over(tunnel.far)
            await tunnel.ended.wait()
        except BaseException:
            tunnel.abort()
            raise
        asyncio.get_running_loop().call_later(_LAST_WORDS, tunnel.abort)
        return web.Response(status=101)

    def _client(self, passing: Passing) -> Client:
        return self._instances.instance(passing.target.instance).impersonating(passing.admitted.identity)

    @asynccontextmanager
    async def _turn(self, passing: Passing) -> AsyncIterator[None]:
        caller, place = CallerId(passing.caller.id), passing.place
        width = self._limits.wide if passing.is_wide else 1
        try:
            async with asyncio.timeout(self._limits.turn_seconds):
                await self._admission.enter(caller, place, width=width)
        except TimeoutError:
            raise ResourceExhausted(
                f"too much is asked of {place} at this moment; send fewer requests at a time", retry_after=RETRY_AFTER
            ) from None
        try:
            async with asyncio.timeout(self._limits.reply_seconds):
                yield
        finally:
            self._admission.leave(caller, place, width=width)

    def _stream(self, passing: Passing) -> AbstractAsyncContextManager[None]:
        caller = passing.caller
        return self._streams.opened(
            CallerId(caller.id), self._objection(passing), credential=caller.session or caller.token
        )

    @asynccontextmanager
    async def _listened_to(self, passing: Passing) -> AsyncIterator[None]:
        """What is asked of a place that does not answer is not waited for again and again."""
        self._silences.check(passing.place)
        try:
            yield
        except (TimedOut, ConnectFailed):
            self._silences.unanswered(passing.place)
            raise

    def _note_answer(self, passing: Passing, status: int, seconds: float) -> None:
        if status in {503, 504} and seconds > SLOW:
            self._silences.unanswered(passing.place)
        else:
            self._silences.answered(passing.place)

    def _objection(self, passing: Passing) -> Callable[[], ApiError | None]:
        """Why a stream must not go on: what was granted must still be."""

        def ask() -> ApiError | None:
            if objection := self._callers.objection_to(passing.caller, delicate=is_delicate(passing.asked)):
                return objection
            try:
                now = self._rights.admit(passing.caller, passing.target, passing.asked)
            except ApiError as error:
                return error
            if passing.admitted.granted and not now.granted:
                return Unavailable("your rights have changed; call again", retry_after=1.0)
            return None

        return ask


def _told(error: Exception, passing: Passing | None, request_id: str) -> ApiError:
    """Clients repeat whatever they are told to come back with: not what may have been done already."""
    told = of_exception(error, request_id=request_id)
    is_uncertain = isinstance(error, TransportError) and not isinstance(error, ConnectFailed)
    if is_uncertain and passing is not None and passing.verb not in _REPEATABLE:
        told.retry_after = None
    return told
