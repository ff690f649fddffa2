"""Forwards requests to the instance in the caller's name, and the replies to the client.

Replies are forwarded as they arrive, piece by piece: a slow client slows its source, and nothing is held in memory but
short replies to writes, until they are recorded, and refusals, until it is clear that they are final. Redirects are
neither followed nor forwarded.
"""

import enum
import time
from collections.abc import AsyncGenerator, Callable

from aiohttp import web

from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.proxy.index.own_writes import OwnWrites
from kairship.apiserver.proxy.reply import replies
from kairship.apiserver.proxy.reply.response_writer import ResponseWriter, chained, read_ahead
from kairship.apiserver.proxy.request import headers
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.audit import PendingRecord
from kairship.apiserver.proxy.request.authorisation import ProxyAuthoriser
from kairship.apiserver.proxy.request.request_info import ResourceRequest
from kairship.apiserver.proxy.upstream.circuit_breaker import CircuitBreakers
from kairship.apiserver.proxy.upstream.kind_scope import is_cluster_scoped
from kairship.apiserver.proxy.upstream.late_grants import LONGEST_REFUSAL, GrantRetries
from kairship.kube import Client, Stream
from kairship.rpc.errors import Unavailable

_LARGEST_HELD = 8 << 20
"""Bytes of a reply to a write that are held to be parsed. No object is larger."""
_WRITTEN_IN_ONE_PIECE = 128 * 1024
"""Bytes of the largest reply to a write that is written in one piece."""


class _SendAgain(enum.Enum):
    """Why a request has to be sent again."""

    GRANT_IS_LATE = "the right to it may be on its way"
    NOTHING_TO_LEAVE_OUT = "its kind has no namespaces, so the server refuses a selector of namespaces"


class Forwarder:
    def __init__(
        self,
        connect: Callable[[AdmittedRequest], Client],
        *,
        authoriser: ProxyAuthoriser,
        own_writes: OwnWrites,
        breakers: CircuitBreakers,
        writer: ResponseWriter,
        limits: Limits,
    ) -> None:
        """`connect` gives the instance's client, as the caller."""
        self._connect = connect
        self._authoriser = authoriser
        self._own_writes = own_writes
        self._breakers = breakers
        self._writer = writer
        self._limits = limits

    async def forward(self, admitted: AdmittedRequest, body: bytes, record: PendingRecord | None) -> web.StreamResponse:
        """Nothing of the reply is sent before the audit record is on the disk."""
        # A watch with initial events may take long to begin.
        timeout = self._limits.write_seconds if admitted.line.is_long_running else self._limits.read_seconds
        retries = GrantRetries(self._authoriser, admitted, timeout=timeout)
        path = admitted.upstream_path
        while True:
            outcome = await self._attempt(admitted, path, body, record, retries)
            match outcome:
                case _SendAgain.GRANT_IS_LATE:
                    await retries.pause()
                case _SendAgain.NOTHING_TO_LEAVE_OUT:
                    path = admitted.upstream_path_of_cluster_scoped
                case response:
                    return response

    async def _attempt(
        self, admitted: AdmittedRequest, path: str, body: bytes, record: PendingRecord | None, retries: GrantRetries
    ) -> web.StreamResponse | _SendAgain:
        """Sends the request once."""
        forwarded = headers.request_headers(admitted.request.headers)
        forwarded["X-Request-Id"] = admitted.envelope.request_id
        must_record = self._own_writes.must_record(admitted)
        if must_record:
            forwarded["Accept-Encoding"] = "identity"  # the reply has to be parsed
        client = self._connect(admitted)
        sent_at = time.monotonic()
        with self._breakers.guarding(admitted.line.destination) as guarded:
            async with client.stream(
                admitted.request.method,
                path,
                body=body if admitted.request.body_exists else None,
                headers=forwarded,
                timeout=retries.timeout,
            ) as upstream:
                guarded.record_reply(upstream.status, time.monotonic() - sent_at)
                if 300 <= upstream.status < 400 and upstream.status != 304:
                    raise Unavailable("the cluster answered with a redirect, which is not followed")
                pieces = upstream.chunks(inactivity_timeout=admitted.idle_timeout)
                if upstream.status == 403 and admitted.authorisation.granted:
                    refusal, _ = await read_ahead(pieces, LONGEST_REFUSAL)
                    if retries.may_follow(b"".join(refusal)):
                        return _SendAgain.GRANT_IS_LATE
                    pieces = chained(refusal, pieces)
                if upstream.status == 400 and await _nothing_to_leave_out(admitted, path, client):
                    return _SendAgain.NOTHING_TO_LEAVE_OUT
                if must_record and upstream.status < 300:
                    return await self._record_write(admitted, upstream, pieces, record)
                if record is not None:
                    await record.wait_stored()
                returned = replies.foreign_headers(upstream.status, upstream.headers, admitted.envelope.request_id)
                response = web.StreamResponse(status=upstream.status, headers=returned)
                return await self._writer.write_stream(admitted.request, response, pieces)

    async def _record_write(
        self,
        admitted: AdmittedRequest,
        upstream: Stream,
        pieces: AsyncGenerator[bytes],
        record: PendingRecord | None,
    ) -> web.StreamResponse:
        """Answers a writer when the write is recorded, so that the writer's next read has it."""
        held, size = await read_ahead(pieces, _LARGEST_HELD + 1)
        is_whole = size <= _LARGEST_HELD
        is_json = upstream.headers.get("Content-Type", "").startswith("application/json")
        returned = replies.foreign_headers(upstream.status, upstream.headers, admitted.envelope.request_id)
        if not await self._own_writes.record(admitted, b"".join(held) if is_whole and is_json else None):
            returned.add("Warning", replies.NOT_RECORDED)
        if record is not None:
            await record.wait_stored()
        if size <= _WRITTEN_IN_ONE_PIECE:
            complete = replies.complete_response(admitted.request, upstream.status, returned, b"".join(held))
            return await self._writer.write_complete(admitted.request, complete, size)
        response = web.StreamResponse(status=upstream.status, headers=returned)
        return await self._writer.write_stream(admitted.request, response, chained(held, pieces))


async def _nothing_to_leave_out(admitted: AdmittedRequest, path: str, client: Client) -> bool:
    """Whether a request that was refused leaves out namespaces of a kind that has none."""
    request_info = admitted.request_info
    return (
        isinstance(request_info, ResourceRequest)
        and path != admitted.upstream_path_of_cluster_scoped
        and await is_cluster_scoped(client, admitted.target, request_info)
    )
