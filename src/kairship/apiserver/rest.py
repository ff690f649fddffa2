"""REST: HTTP in front of the chain.

One coroutine per request, below aiohttp's own router and middlewares: which method is meant comes from the protos
(`routing`), and what must happen before it from the chain. What leads into an instance is the
proxy's. Connections, TLS and keep-alive are aiohttp's.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from aiohttp import web
from protobuf import Message

from kairship.apiserver import browser_sessions
from kairship.apiserver.bodies import Bodies
from kairship.apiserver.browser_sessions import BrowserSession
from kairship.apiserver.chain import Chain, Encode, Receive
from kairship.apiserver.downloads import FileStream
from kairship.apiserver.origins import Origins
from kairship.apiserver.proxy.proxy import Proxy
from kairship.apiserver.proxy.replies import refusal
from kairship.apiserver.proxy.request_line import line_of
from kairship.apiserver.replies import error_response, outcome_response
from kairship.apiserver.routing import Match, Mismatch, Router
from kairship.apiserver.server_sent_events import EventStream
from kairship.process.certificates import name_asked_for
from kairship.rpc.calls import Call, Envelope
from kairship.rpc.errors import ApiError, NotFound, Unimplemented
from kairship.wire import write

PROTOCOL = "rest"
_TO_A_THREAD = 1 << 17
"""Bytes of a body from which on reading it would hold up everybody else."""

Page: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Rest:
    def __init__(
        self,
        chain: Chain,
        router: Router,
        *,
        pages: Mapping[str, Page],
        receivers: Mapping[str, Page],
        origins: Origins,
        proxy: Proxy | None = None,
    ) -> None:
        """`pages` are what is served beside the API, to anybody: paths and what answers them. `receivers` take what
        others post, and know by themselves whom they take it from."""
        self._chain = chain
        self._router = router
        self._beside = {"GET": pages, "HEAD": pages, "POST": receivers}
        self._bodies = Bodies(chain.limits)
        self._origins = origins
        self._proxy = proxy

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started = time.monotonic()
        envelope = browser_sessions.envelope_of(request, self._origins)
        address = request.raw_path
        if not address.startswith("/"):  # a proxy may write the whole of it into the request line
            address = request.rel_url.raw_path_qs
        if self._proxy is not None:
            asked_for, host = name_asked_for(request.transport), request.headers.get("Host", "")
            try:
                line = line_of(request.method, address, asked_for=asked_for, host=host)
            except ApiError as error:
                return refusal(error, envelope.request_id)
            if line is not None:
                return await self._proxy.handle(request, line, envelope)
        path, _, query = address.partition("?")
        try:
            browser_sessions.refuse_secrets(query)
            match = self._router.find(request.method, path)
        except ApiError as error:
            return self._refused(envelope, error, started)
        if isinstance(match, Mismatch):
            page = self._beside.get(request.method, {}).get(path)
            return await page(request) if page else self._refused(envelope, _explain(match), started, match)

        browser = BrowserSession(request, match.method)

        async def receive(call: Call) -> Message[Any]:
            message = await self._receive(request, match, query, call)
            browser.complete(message)
            return message

        def encode(reply: Message[Any]) -> bytes:
            return write(browser.keep(reply))

        if match.method.streams:
            return await self._stream(request, match, envelope, receive)
        outcome = await self._chain.unary(PROTOCOL, match.method, envelope, receive, encode)
        return browser.conclude(outcome_response(outcome))

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

        async def receive_known(call: Call) -> Message[Any]:
            stream.note_known()
            return await receive(call)

        try:
            async with stream.kept_alive():
                outcome = await self._chain.stream(PROTOCOL, match.method, envelope, receive_known, encode, stream.send)
        except* ApiError:
            pass  # the reader is gone, or as good as
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
                if len(body) < _TO_A_THREAD:
                    message, ignored = transcoder.read(match.values, query, body)
                else:
                    message, ignored = await asyncio.to_thread(transcoder.read, match.values, query, body)
        for path in ignored:
            call.warn(f"unknown field {path!r} is ignored")
        return message

    def _refused(
        self, envelope: Envelope, error: ApiError, started: float, mismatch: Mismatch | None = None
    ) -> web.Response:
        self._chain.note_unknown(PROTOCOL, error, started)
        response = error_response(error, envelope.request_id)
        if mismatch is not None and mismatch.allowed:
            response.set_status(405)
            response.headers["Allow"] = ", ".join(mismatch.allowed)
        return response


def _explain(mismatch: Mismatch) -> ApiError:
    if mismatch.allowed:
        return Unimplemented(f"this path has {' and '.join(mismatch.allowed)}; see /openapi.json")
    return NotFound("there is no such path; see /openapi.json")
