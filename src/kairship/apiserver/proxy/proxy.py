"""One request of a Kubernetes client, from its first byte to its last.

authentication → what it asks for → rights → audit → its turn among callers → from the index,
                                                                            or passed on in the caller's name → back
"""

import time

import msgspec
import structlog
from aiohttp import web

from kairship.apiserver.admission import Admission
from kairship.apiserver.authentication import Authenticator
from kairship.apiserver.bodies import Bodies
from kairship.apiserver.limits import Limits
from kairship.apiserver.proxy import replies
from kairship.apiserver.proxy.auditing import Begun, ProxyAudit
from kairship.apiserver.proxy.door import Door, Vouching
from kairship.apiserver.proxy.forwarding import Forwarding
from kairship.apiserver.proxy.indexed import Answer, IndexedReads
from kairship.apiserver.proxy.noting import NotedWrites
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.proxy.records import Ended, Records
from kairship.apiserver.proxy.request_line import RequestLine
from kairship.apiserver.proxy.rights import ProxyRights
from kairship.apiserver.proxy.sending import Sender, compresses
from kairship.apiserver.proxy.silence import PAUSE, Silences
from kairship.apiserver.proxy.terminals import Terminals
from kairship.apiserver.proxy.turns import Turns
from kairship.apiserver.services.reach import Reach
from kairship.apiserver.streams import Streams
from kairship.index import PageTokens, PassThrough
from kairship.kube import Client, ConnectFailed, TransportError
from kairship.rpc.calls import Envelope
from kairship.rpc.defects import log_defect
from kairship.rpc.errors import ApiError, DeadlineExceeded, Internal, NotFound, of_exception

_REPEATABLE = frozenset({"get", "list", "watch", "discover"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})

log = structlog.get_logger("kairship.proxy")


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
        records: Records,
    ) -> None:
        self._instances = behind.instances
        self._audit = behind.audit
        self._reads = behind.reads
        self._door = Door(authenticator, callers=behind.callers, rights=behind.rights, audit=behind.audit)
        self._turns = Turns(admission, streams, objection=self._door.objection, limits=limits)
        self._bodies = Bodies(limits)
        self._sender = Sender(limits)
        silences = Silences()
        self._forwarding = Forwarding(
            self._client, writes=behind.writes, silences=silences, sender=self._sender, limits=limits
        )
        self._terminals = Terminals(self._client, silences=silences, limits=limits)
        self._records = records

    async def handle(self, request: web.BaseRequest, line: RequestLine, envelope: Envelope) -> web.StreamResponse:
        """Whatever happens is the reply; nothing is raised but cancellation."""
        started = time.monotonic()
        response: web.StreamResponse | None = None
        passing: Passing | None = None
        try:
            passing = await self._door.let_in(request, line, envelope)
            response = await self._audited(passing)
        except ConnectionError:
            response = web.Response(status=499)  # the caller went away, as those who watch do
        except Exception as error:  # noqa: BLE001 - each is told to the caller, and defects to the log
            told = _told(error, passing, envelope.request_id)
            if isinstance(told, Internal):
                log_defect(log, error, "Proxy", envelope.request_id)
            response = replies.refusal(told, envelope.request_id)
        finally:
            self._records.add(
                Ended(
                    at=time.time(),
                    seconds=time.monotonic() - started,
                    line=line,
                    request_id=envelope.request_id,
                    caller=passing.caller.id if passing else None,
                    origin=envelope.origin,
                    method=request.method,
                    source=replies.source_of(response),
                    status=response.status if response is not None else 499,
                )
            )
        return response

    async def _audited(self, passing: Passing) -> web.StreamResponse:
        if not self._audit.remembers(passing):
            return await self._serve(passing, None)
        begun = await self._audit.before(passing)
        status = 499  # unless it ends otherwise
        try:
            response = await self._serve(passing, begun)
            status = response.status
        except Exception as error:
            status = of_exception(error).http_status
            await begun.on_disk()
            raise
        finally:
            self._audit.after(begun, status)
        return response

    async def _serve(self, passing: Passing, begun: Begun | None) -> web.StreamResponse:
        request = passing.request
        if request.method not in _METHODS:
            return replies.refusal(NotFound("there is no such method"), passing.envelope.request_id, status=405)
        async with self._turns.taken(passing):
            if passing.line.verb == "get" and self._reads.concerns(passing):
                # It is there or it is not, which takes no time. What it may wait for all the same has limits.
                response = await self._single(passing)
                if response is not None:
                    return response
            async with self._turns.limited(passing):
                if passing.upgrades:
                    return await self._terminals.join(passing)
                return await self._at_length(passing, begun)

    async def _single(self, passing: Passing) -> web.StreamResponse | None:
        """One object from the index. None if the instance has to be asked."""
        try:
            answer = await self._reads.single(passing, lambda: self._client(passing))
        except PassThrough as reason:
            _note_passed_on(passing, reason)
            return None
        return await self._send(passing, answer)

    async def _at_length(self, passing: Passing, begun: Begun | None) -> web.StreamResponse:
        async with self._bodies.received(passing.request) as body:
            if passing.line.verb != "get" and self._reads.concerns(passing):
                try:
                    async with self._reads.answer(passing, lambda: self._client(passing)) as answer:
                        return await self._send(passing, answer)
                except PassThrough as reason:
                    _note_passed_on(passing, reason)
            if PageTokens.is_ours(passing.parameters.get("continue", "")):
                return replies.expired(passing.envelope.request_id)
            return await self._forwarding.pass_on(passing, body, begun)

    async def _send(self, passing: Passing, answer: Answer) -> web.StreamResponse:
        request = passing.request
        if answer.whole is not None and not compresses(request, len(answer.whole)):
            whole = replies.whole_of_index(request, answer, answer.whole, passing.envelope.request_id)
            return await self._sender.send_whole(request, whole, len(answer.whole))
        response = replies.of_index(answer, passing.envelope.request_id)
        send = self._sender.send if passing.line.lasts else self._sender.send_list
        return await send(request, response, answer.body)

    def _client(self, passing: Passing) -> Client:
        return self._instances.instance(passing.target.instance).impersonating(passing.admitted.identity)


def _note_passed_on(passing: Passing, reason: PassThrough) -> None:
    log.debug("passed on", request_id=passing.envelope.request_id, reason=str(reason))


def _told(error: Exception, passing: Passing | None, request_id: str) -> ApiError:
    """Clients repeat whatever they are told to come back with: not what may have been done already."""
    told = of_exception(error, request_id=request_id)
    is_repeatable = passing is None or passing.line.verb in _REPEATABLE
    if isinstance(error, TransportError) and not isinstance(error, ConnectFailed) and not is_repeatable:
        told.retry_after = None
    elif isinstance(told, DeadlineExceeded) and is_repeatable:
        told.retry_after = PAUSE
    return told
