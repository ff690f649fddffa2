"""The chain: what every call passes before and after its service, over REST and gRPC alike.

    request id → authentication → fair queue → the request is read → authorisation → validation by the protos' rules
    → audit of the intent → the service → audit of the outcome → log, metrics, trace

A request is read only after its caller is authenticated and has got a turn in the fair queue: the bytes of an unknown
client are not worth memory. Every failure becomes an `ApiError` in the `Outcome`; only cancellation is raised.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import structlog
from protobuf import Message

from kairship import kube
from kairship.apiserver.audit import Audit
from kairship.apiserver.auth.authentication import Authenticator
from kairship.apiserver.auth.authorisation import (
    CallAuthoriser,
    require_permission_named,
    require_same_page,
    require_whole_api_token,
)
from kairship.apiserver.flowcontrol.fair_queue import CallerId, FairQueue
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.flowcontrol.rate_limit import RateLimit
from kairship.apiserver.flowcontrol.streams import Streams
from kairship.apiserver.pipeline.metrics import Metrics
from kairship.apiserver.pipeline.tracing import Tracing
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.process.client_network import client_network
from kairship.rpc.calls import ANONYMOUS, Call, Envelope
from kairship.rpc.defects import log_defect
from kairship.rpc.errors import ApiError, Code, Internal, InvalidArgument, Unimplemented, of_exception
from kairship.rpc.service_registry import ServiceRegistry
from kairship.wire import Method, violations

Receive: TypeAlias = Callable[[Call], Awaitable[Message[Any]]]
Encode: TypeAlias = Callable[[Message[Any]], bytes]
Send: TypeAlias = Callable[[bytes], Awaitable[None]]

_CANCELLED = ApiError(Code.CANCELLED, "the caller closed the call")

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a call ended."""

    request_id: str
    reply: bytes = b""
    """The encoded reply; empty after an error, and of a stream."""
    error: ApiError | None = None
    warnings: Sequence[str] = ()
    data_age: float | None = None


@dataclass(slots=True)
class _CallState:
    """The state of a call on its way through the chain."""

    outcome: Outcome
    call: Call | None = None
    request: Message[Any] | None = None
    authorised: bool = False


class Chain:
    def __init__(
        self,
        registry: ServiceRegistry,
        *,
        authenticator: Authenticator,
        authoriser: CallAuthoriser,
        audit: Audit,
        limits: Limits,
        metrics: Metrics,
        tracing: Tracing,
    ) -> None:
        self.limits = limits
        self.streams = Streams(limits)
        self._registry = registry
        self._authenticator = authenticator
        self._authoriser = authoriser
        self._audit = audit
        self.fair_queue = FairQueue(limits)
        self._unauthenticated = RateLimit(
            per_second=limits.sign_ins_per_second,
            burst=limits.sign_ins_burst,
            message="too many requests without a credential come from your address; wait a moment",
        )
        self._metrics = metrics
        self._tracing = tracing
        self._log = structlog.get_logger("kairship.apiserver").bind()  # bound once, because every call uses it
        metrics.follow(self.fair_queue, self.streams)

    async def unary(
        self,
        protocol: str,
        method: Method,
        envelope: Envelope,
        receive: Receive,
        encode: Encode,
        *,
        seconds: float | None = None,
    ) -> Outcome:
        """Serves a call with one reply. `seconds` is the client's own deadline; the shorter of it and ours counts."""
        allowed = _shorter(self.limits.seconds_for(method), seconds)

        async def act(state: _CallState) -> None:
            async with asyncio.timeout(allowed):
                call = await self._identify(state, method, envelope, allowed)
                caller = _queue_key(call)
                await self.fair_queue.enter(caller)
                try:
                    request = await self._checked_request(state, call, receive)
                    handler = self._registry.unary(method)
                    if handler is None:
                        raise _unimplemented(method)
                    _require_valid(request)
                    reply = await self._audited(call, request, partial(handler, request, call))
                    state.outcome.reply = encode(reply)
                finally:
                    self.fair_queue.leave(caller)

        return await self._serve(protocol, method, envelope, act)

    async def stream(
        self,
        protocol: str,
        method: Method,
        envelope: Envelope,
        receive: Receive,
        encode: Encode,
        send: Send,
        *,
        seconds: float | None = None,
    ) -> Outcome:
        """Serves a call with many replies.

        Each reply is sent before the next is taken from the service: a slow reader slows its source.
        """
        allowed = _shorter(self.limits.seconds_for(method), seconds)

        async def act(state: _CallState) -> None:
            async with asyncio.timeout(self.limits.read_seconds):
                call = await self._identify(state, method, envelope, allowed)
                request = await self._checked_request(state, call, receive)
            handler = self._registry.streaming(method)
            if handler is None:
                raise _unimplemented(method)
            _require_valid(request)

            async def send_replies() -> None:
                async with (
                    self.streams.opened(
                        _queue_key(call),
                        self._authoriser.objection(call, request),
                        credential=call.caller.session or call.caller.token,
                        seconds=seconds,
                    ),
                    aclosing(handler(request, call)) as replies,
                ):
                    async for reply in replies:
                        await send(encode(reply))

            await self._audited(call, request, send_replies)

        return await self._serve(protocol, method, envelope, act)

    def count_unrouted(self, protocol: str, error: ApiError, started: float) -> None:
        """Counts a request that leads to no method."""
        self._metrics.operation(protocol, None).count(error.code.name, time.monotonic() - started)

    async def _serve(
        self, protocol: str, method: Method, envelope: Envelope, act: Callable[[_CallState], Awaitable[None]]
    ) -> Outcome:
        """Runs `act` within a trace, and then counts and logs the call."""
        started = time.monotonic()
        outcome = Outcome(request_id=envelope.request_id)
        state = _CallState(outcome)
        code = "CANCELLED"  # remains if the call is cancelled
        try:
            try:
                with self._tracing.span(method, envelope):
                    try:
                        await act(state)
                    except Exception as error:
                        raise self._to_api_error(error, method, envelope.request_id) from error
            except ApiError as error:
                outcome.error, outcome.reply = error, b""
                if not state.authorised:
                    self._audit.refused(method, envelope, state.call, state.request, error)
            code = outcome.error.code.name if outcome.error else "OK"
        finally:
            seconds = time.monotonic() - started
            caller = None
            if state.call is not None:
                outcome.warnings, outcome.data_age = state.call.warnings, state.call.data_age
                caller = state.call.caller.id
            self._metrics.operation(protocol, method).count(code, seconds)
            self._log.info(
                "request",
                request_id=envelope.request_id,
                protocol=protocol,
                operation=method.path,
                caller=caller,
                origin=envelope.origin,
                code=code,
                seconds=round(seconds, 6),
            )
        return outcome

    async def _identify(self, state: _CallState, method: Method, envelope: Envelope, seconds: float) -> Call:
        deadline = time.monotonic() + seconds
        is_public = method.scope is Scope.ANYBODY
        if is_public:
            self._unauthenticated.take(client_network(envelope.origin))
        caller = ANONYMOUS if is_public else await self._authenticator.authenticate(envelope)
        call = state.call = Call(
            request_id=state.outcome.request_id,
            caller=caller,
            method=method,
            deadline=deadline,
            origin=envelope.origin,
        )
        require_permission_named(call)
        require_whole_api_token(call.caller)
        if envelope.csrf is not None and not is_public:
            require_same_page(call.caller, envelope.csrf)
        return call

    async def _checked_request(self, state: _CallState, call: Call, receive: Receive) -> Message[Any]:
        request = state.request = await receive(call)
        if call.warnings:
            self._metrics.ignored_fields.inc()
        self._authoriser.authorise(call, request)
        state.authorised = True
        return request

    async def _audited(self, call: Call, request: Message[Any], act: Callable[[], Awaitable[T]]) -> T:
        await self._audit.before(call, request)
        error: ApiError | None = _CANCELLED
        try:
            result = await act()
            error = None
        except Exception as failure:
            error = of_exception(failure, request_id=call.request_id)
            raise
        finally:
            try:
                await self._audit.after(call, request, error)
            except Exception as failure:  # noqa: BLE001 - the call is over; a gap in the audit is logged
                self._log.error("audit of an outcome failed", request_id=call.request_id, error=type(failure).__name__)
        return result

    def _to_api_error(self, error: Exception, method: Method, request_id: str) -> ApiError:
        translated = of_exception(error, request_id=request_id)
        if isinstance(translated, Internal):
            log_defect(self._log, error, method.path, request_id)
        elif not isinstance(error, ApiError):
            # An API server's message may quote the object; an error of the connection does not.
            detail = error.reason if isinstance(error, kube.ApiError) else str(error)
            self._log.warning(
                "failed", request_id=request_id, operation=method.path, error=type(error).__name__, detail=detail
            )
        return translated


def _queue_key(call: Call) -> CallerId:
    """Returns the caller that a request counts against: its network, if it is not authenticated."""
    return CallerId(call.caller.id or f"@{client_network(call.origin)}")


def _require_valid(request: Message[Any]) -> None:
    if found := violations(request):
        raise InvalidArgument(violations=found)


def _unimplemented(method: Method) -> Unimplemented:
    return Unimplemented(f"{method.service}.{method.name} is not implemented yet; a later version of Kairship has it")


def _shorter(ours: float, theirs: float | None) -> float:
    return ours if theirs is None else max(0.0, min(ours, theirs))
