"""REST: one HTTP request in front of the chain.

Requests are handled below aiohttp's own router and middlewares: the protos say which method is meant (`routing`), and
the chain does what must happen before it. A request that leads into an instance is passed to the native proxy.
aiohttp provides connections, TLS and keep-alive.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

from aiohttp import web
from protobuf import Message

from kairship.apiserver.auth.authentication import refuse_secrets
from kairship.apiserver.flowcontrol.client_address import TrustedProxies
from kairship.apiserver.flowcontrol.request_bodies import RequestBodies
from kairship.apiserver.http import browser_sessions
from kairship.apiserver.http.browser_sessions import BrowserSession
from kairship.apiserver.http.connections import recognise
from kairship.apiserver.http.downloads import FileStream
from kairship.apiserver.http.replies import error_response, outcome_response
from kairship.apiserver.http.routing import Match, Mismatch, Router
from kairship.apiserver.http.server_sent_events import EventStream
from kairship.apiserver.pipeline.chain import Chain, Encode, Receive
from kairship.apiserver.proxy.handler import Proxy
from kairship.apiserver.proxy.reply.replies import refusal
from kairship.apiserver.proxy.request.request_line import parse_request_line
from kairship.process.certificates import requested_server_name
from kairship.rpc.calls import ANONYMOUS, Call, Envelope
from kairship.rpc.errors import ApiError, NotFound, Unimplemented
from kairship.wire import write

PROTOCOL = "rest"
_PARSE_IN_THREAD = 1 << 17
"""Bytes of a body from which on parsing it would block the event loop for too long."""

Page: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Rest:
    def __init__(
        self,
        chain: Chain,
        router: Router,
        *,
        pages: Mapping[str, Page],
        webhooks: Mapping[str, Page],
        trusted_proxies: TrustedProxies,
        proxy: Proxy | None = None,
    ) -> None:
        """`pages` are public GET handlers by path. `webhooks` are POST handlers by path, which authenticate their own
        callers. Both are outside of the API."""
        self._chain = chain
        self._router = router
        self._outside_api = {"GET": pages, "HEAD": pages, "POST": webhooks}
        self._bodies = RequestBodies(chain.limits)
        self._trusted_proxies = trusted_proxies
        self._proxy = proxy

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started = time.monotonic()
        address = request.raw_path
        if not address.startswith("/"):  # a proxy may write the absolute URL into the request line
            address = request.rel_url.raw_path_qs
        if self._proxy is not None:
            asked_for, host = requested_server_name(request.transport), request.headers.get("Host", "")
            try:
                line = parse_request_line(request.method, address, server_name=asked_for, host=host)
            except ApiError as error:
                return refusal(error, browser_sessions.envelope_of(request, self._trusted_proxies).request_id)
            if line is not None:
                envelope = browser_sessions.envelope_of(request, self._trusted_proxies, foreign_reply=True)
                proxied = await self._proxy.handle(request, line, envelope)
                if proxied.status != HTTPStatus.UNAUTHORIZED:
                    recognise(request)
                return proxied
        envelope = browser_sessions.envelope_of(request, self._trusted_proxies)
        path, _, query = address.partition("?")
        try:
            refuse_secrets(query)
            match = self._router.find(request.method, path)
        except ApiError as error:
            return self._refused(envelope, error, started)
        if isinstance(match, Mismatch):
            page = self._outside_api.get(request.method, {}).get(path)
            if page is None:
                return self._refused(envelope, _explain(match), started, match)
            answered = await page(request)
            if request.method == "POST" and answered.status < HTTPStatus.MULTIPLE_CHOICES:
                recognise(request)  # a webhook authenticates its callers itself
            return answered

        browser = BrowserSession(request, match.method)

        async def receive(call: Call) -> Message[Any]:
            if call.caller != ANONYMOUS:
                recognise(request)
            message = await self._receive(request, match, query, call)
            browser.complete(message)
            return message

        def encode(reply: Message[Any]) -> bytes:
            return write(browser.take_tokens(reply))

        if match.method.streams:
            return await self._stream(request, match, envelope, receive)
        outcome = await self._chain.unary(PROTOCOL, match.method, envelope, receive, encode)
        return browser.set_cookies(outcome_response(outcome))

    async def _stream(
        self, request: web.BaseRequest, match: Match, envelope: Envelope, receive: Receive
    ) -> web.StreamResponse:
        download, patience = match.method.download, self._chain.limits.stalled_seconds
        stream: EventStream | FileStream
        encode: Encode
        if download is not None:
            stream, encode = (
                FileStream(request, envelope.request_id, download, stalled_seconds=patience),
                download.piece,
            )
        else:
            stream, encode = EventStream(request, envelope.request_id, stalled_seconds=patience), write
        outcome = None

        async def receive_and_begin(call: Call) -> Message[Any]:
            stream.authenticated()
            return await receive(call)

        try:
            async with stream.kept_alive():
                outcome = await self._chain.stream(
                    PROTOCOL, match.method, envelope, receive_and_begin, encode, stream.send
                )
        except* ApiError:
            pass  # the client has closed the connection, or does not read
        if stream.response is None:
            return outcome_response(outcome) if outcome else web.Response(status=499)
        await stream.finish(outcome.error if outcome else None)
        return stream.response

    async def _receive(self, request: web.BaseRequest, match: Match, query: str, call: Call) -> Message[Any]:
        transcoder = match.transcoder
        if not transcoder.takes_body:
            message, ignored = transcoder.read(match.values, query, b"")
        else:
            async with self._bodies.received(request) as body:
                if len(body) < _PARSE_IN_THREAD:
                    message, ignored = transcoder.read(match.values, query, body)
                else:
                    message, ignored = await asyncio.to_thread(transcoder.read, match.values, query, body)
        for path in ignored:
            call.warn(f"unknown field {path!r} is ignored")
        return message

    def _refused(
        self, envelope: Envelope, error: ApiError, started: float, mismatch: Mismatch | None = None
    ) -> web.Response:
        self._chain.count_unrouted(PROTOCOL, error, started)
        response = error_response(error, envelope.request_id)
        if mismatch is not None and mismatch.allowed:
            response.set_status(405)
            response.headers["Allow"] = ", ".join(mismatch.allowed)
        return response


def _explain(mismatch: Mismatch) -> ApiError:
    if mismatch.allowed:
        return Unimplemented(f"this path takes {' and '.join(mismatch.allowed)} only; see /openapi.json")
    return NotFound("there is no such path; see /openapi.json")
