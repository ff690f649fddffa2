"""Handles one request of a Kubernetes client, from its first byte to its last.

authenticate → authorise → audit → fair queue → answer from the index
                                              → or forward in the caller's name, and forward the reply

Each request is one coroutine on the event loop of its worker.
"""

import time

import msgspec
import structlog
from aiohttp import web

from kairship.apiserver.auth.authentication import Authenticator
from kairship.apiserver.auth.revocation import RevocationCheck
from kairship.apiserver.flowcontrol.fair_queue import FairQueue
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.flowcontrol.request_bodies import RequestBodies
from kairship.apiserver.flowcontrol.streams import Streams
from kairship.apiserver.proxy.access_log import AccessLog, AccessLogEntry
from kairship.apiserver.proxy.index.own_writes import OwnWrites
from kairship.apiserver.proxy.index.reads import Answer, IndexedReads
from kairship.apiserver.proxy.reply import replies
from kairship.apiserver.proxy.reply.response_writer import ResponseWriter, is_compressed
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.audit import PendingRecord, ProxyAudit
from kairship.apiserver.proxy.request.authorisation import ProxyAuthoriser
from kairship.apiserver.proxy.request.filter import ExecutionNamespaces, RequestFilter
from kairship.apiserver.proxy.request.flow_control import FlowControl
from kairship.apiserver.proxy.request.request_line import RequestLine
from kairship.apiserver.proxy.upstream.circuit_breaker import PROBE_INTERVAL, CircuitBreakers
from kairship.apiserver.proxy.upstream.forwarding import Forwarder
from kairship.apiserver.proxy.upstream.upgrade import UpgradeForwarder
from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.index import PageTokens, PassThrough
from kairship.kube import Client, ConnectFailed, TransportError
from kairship.rpc.calls import Envelope
from kairship.rpc.defects import log_defect
from kairship.rpc.errors import ApiError, DeadlineExceeded, Internal, NotFound, of_exception

_READ_VERBS = frozenset({"get", "list", "watch", "discover"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_CLIENT_LEFT = 499

log = structlog.get_logger("kairship.proxy")


class ProxyDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker gives its proxy, apart from what the proxy shares with the management API."""

    instances: InstanceClients
    authoriser: ProxyAuthoriser
    revocation: RevocationCheck
    audit: ProxyAudit
    reads: IndexedReads
    own_writes: OwnWrites
    execution_namespaces: ExecutionNamespaces


class Proxy:
    def __init__(
        self,
        dependencies: ProxyDependencies,
        *,
        authenticator: Authenticator,
        fair_queue: FairQueue,
        streams: Streams,
        limits: Limits,
        access_log: AccessLog,
    ) -> None:
        self._instances = dependencies.instances
        self._audit = dependencies.audit
        self._reads = dependencies.reads
        self._filter = RequestFilter(
            authenticator,
            revocation=dependencies.revocation,
            authoriser=dependencies.authoriser,
            audit=dependencies.audit,
            execution_namespaces=dependencies.execution_namespaces,
        )
        self._flow_control = FlowControl(fair_queue, streams, objection=self._filter.objection, limits=limits)
        self._bodies = RequestBodies(limits)
        self._writer = ResponseWriter(limits)
        breakers = CircuitBreakers()
        self._forwarder = Forwarder(
            self._client,
            authoriser=dependencies.authoriser,
            own_writes=dependencies.own_writes,
            breakers=breakers,
            writer=self._writer,
            limits=limits,
        )
        self._upgrades = UpgradeForwarder(
            self._client, authoriser=dependencies.authoriser, breakers=breakers, limits=limits
        )
        self._access_log = access_log

    async def handle(self, request: web.BaseRequest, line: RequestLine, envelope: Envelope) -> web.StreamResponse:
        """Every error becomes a reply; only cancellation is raised."""
        started = time.monotonic()
        response: web.StreamResponse | None = None
        admitted: AdmittedRequest | None = None
        try:
            admitted = await self._filter.admit(request, line, envelope)
            response = await self._audited(admitted)
        except ConnectionError:
            response = web.Response(status=_CLIENT_LEFT)  # which is how a client ends a watch
        except Exception as error:  # noqa: BLE001 - the client gets a Status, and a defect is logged
            reported = _error_for_client(error, admitted, envelope.request_id)
            if isinstance(reported, Internal):
                log_defect(log, error, "Proxy", envelope.request_id)
            response = replies.refusal(reported, envelope.request_id)
        finally:
            self._access_log.add(
                AccessLogEntry(
                    ended_at=time.time(),
                    seconds=time.monotonic() - started,
                    line=line,
                    request_id=envelope.request_id,
                    caller=admitted.caller.id if admitted else None,
                    origin=envelope.origin,
                    method=request.method,
                    source=replies.source_of(response),
                    status=response.status if response is not None else _CLIENT_LEFT,
                )
            )
        return response

    async def _audited(self, admitted: AdmittedRequest) -> web.StreamResponse:
        if not self._audit.must_record(admitted):
            return await self._serve(admitted, None)
        record = await self._audit.begin(admitted)
        status = _CLIENT_LEFT  # the outcome if this task is cancelled
        try:
            response = await self._serve(admitted, record)
            status = response.status
        except Exception as error:
            status = of_exception(error).http_status
            await record.wait_stored()
            raise
        finally:
            self._audit.complete(record, status)
        return response

    async def _serve(self, admitted: AdmittedRequest, record: PendingRecord | None) -> web.StreamResponse:
        request = admitted.request
        if request.method not in _METHODS:
            unknown = NotFound(f"the Kubernetes API has no method {request.method}; use {', '.join(sorted(_METHODS))}")
            return replies.refusal(unknown, admitted.envelope.request_id, status=405)
        async with self._flow_control.seated(admitted):
            if admitted.line.verb == "get" and self._reads.may_answer(admitted):
                # This takes no time limit of its own: the lookup is short, and whatever it waits for has a limit.
                response = await self._get_from_index(admitted)
                if response is not None:
                    return response
            async with self._flow_control.time_limit(admitted):
                if admitted.is_upgrade:
                    return await self._upgrades.forward(admitted)
                return await self._answer_or_forward(admitted, record)

    async def _get_from_index(self, admitted: AdmittedRequest) -> web.StreamResponse | None:
        """Answers with one object from the index. None if the request has to be forwarded."""
        try:
            answer = await self._reads.get(admitted, lambda: self._client(admitted))
        except PassThrough as reason:
            _log_pass_through(admitted, reason)
            return None
        return await self._send(admitted, answer)

    async def _answer_or_forward(self, admitted: AdmittedRequest, record: PendingRecord | None) -> web.StreamResponse:
        async with self._bodies.received(admitted.request) as body:
            if admitted.line.verb != "get" and self._reads.may_answer(admitted):
                try:
                    async with self._reads.answer(admitted, lambda: self._client(admitted)) as answer:
                        return await self._send(admitted, answer)
                except PassThrough as reason:
                    _log_pass_through(admitted, reason)
            if PageTokens.is_ours(admitted.parameters.get("continue", "")):
                return replies.expired_page(admitted.envelope.request_id)
            return await self._forwarder.forward(admitted, body, record)

    async def _send(self, admitted: AdmittedRequest, answer: Answer) -> web.StreamResponse:
        request, body = admitted.request, answer.complete_body
        if body is not None and not is_compressed(request, len(body)):
            complete = replies.complete_index_response(request, answer, body, admitted.envelope.request_id)
            return await self._writer.write_complete(request, complete, len(body))
        response = replies.index_response(answer, admitted.envelope.request_id)
        write = self._writer.write_stream if admitted.line.is_long_running else self._writer.write_list
        return await write(request, response, answer.body)

    def _client(self, admitted: AdmittedRequest) -> Client:
        return self._instances.instance(admitted.target.instance).impersonating(admitted.authorisation.identity)


def _log_pass_through(admitted: AdmittedRequest, reason: PassThrough) -> None:
    log.debug("passed on", request_id=admitted.envelope.request_id, reason=str(reason))


def _error_for_client(error: Exception, admitted: AdmittedRequest | None, request_id: str) -> ApiError:
    """Clients repeat a request by themselves if the reply has a time to retry, so a write that may have been carried
    out gets none."""
    reported = of_exception(error, request_id=request_id)
    is_repeatable = admitted is None or admitted.line.verb in _READ_VERBS
    if isinstance(error, TransportError) and not isinstance(error, ConnectFailed) and not is_repeatable:
        reported.retry_after = None
    elif isinstance(reported, DeadlineExceeded) and is_repeatable:
        reported.retry_after = PROBE_INTERVAL
    return reported
