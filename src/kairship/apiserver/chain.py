"""What every call passes, whatever it came by: one chain for REST and gRPC.

    request id → authentication → turn among callers → the request is read → authorisation → rules of the protos
    → audit of the intent → the service → audit of the outcome → log, metrics, trace

A request is read only when it is known who sends it and their turn has come: bytes of strangers are not worth memory.
Whatever goes wrong comes out as an `ApiError` inside an `Outcome`; nothing is raised but cancellation.
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
from kairship.apiserver.admission import Admission, CallerId
from kairship.apiserver.audit import Audit
from kairship.apiserver.authentication import Authenticator
from kairship.apiserver.authorisation import (
    Authorizer,
    require_for_everything,
    require_permission_named,
    require_same_page,
)
from kairship.apiserver.limits import Limits
from kairship.apiserver.metrics import Metrics
from kairship.apiserver.pacing import Pace
from kairship.apiserver.streams import Streams
from kairship.apiserver.tracing import Tracing
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.rpc.calls import NOBODY, Call, Envelope
from kairship.rpc.defects import log_defect
from kairship.rpc.errors import ApiError, Code, Internal, InvalidArgument, Unimplemented, of_exception
from kairship.rpc.registry import Registry
from kairship.wire import Method, violations

Receive: TypeAlias = Callable[[Call], Awaitable[Message[Any]]]
Encode: TypeAlias = Callable[[Message[Any]], bytes]
Send: TypeAlias = Callable[[bytes], Awaitable[None]]

_GONE = ApiError(Code.CANCELLED, "the caller went away")

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a call ended."""

    request_id: str
    reply: bytes = b""
    """As it is sent; empty if there was an error, or many replies."""
    error: ApiError | None = None
    warnings: Sequence[str] = ()
    data_age: float | None = None


@dataclass(slots=True)
class _Serving:
    """A call on its way through the chain."""

    outcome: Outcome
    call: Call | None = None
    request: Message[Any] | None = None
    begun: bool = False
    """Whether the caller was let in."""


class Chain:
    def __init__(
        self,
        registry: Registry,
        *,
        authenticator: Authenticator,
        authorizer: Authorizer,
        audit: Audit,
        limits: Limits,
        metrics: Metrics,
        tracing: Tracing,
    ) -> None:
        self.limits = limits
        self.streams = Streams(limits)
        self._registry = registry
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._audit = audit
        self.admission = Admission(limits)
        self._strangers = Pace(
            per_second=limits.sign_ins_per_second,
            at_once=limits.sign_ins_at_once,
            told="too many requests of people who are not signed in come from your address; wait a moment",
        )
        self._metrics = metrics
        self._tracing = tracing
        self._log = structlog.get_logger("kairship.apiserver").bind()  # once, for it is used at every call
        metrics.follow(self.admission, self.streams)

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
        """Serve a call with one reply, within `seconds` if the client gives it fewer than we do."""
        allowed = _shorter(self.limits.seconds_for(method), seconds)

        async def act(serving: _Serving) -> None:
            async with asyncio.timeout(allowed):
                call = await self._identify(serving, method, envelope, allowed)
                caller = _line_of(call)
                await self.admission.enter(caller)
                try:
                    request = await self._checked_request(serving, call, receive)
                    handler = self._registry.unary(method)
                    if handler is None:
                        raise _unimplemented(method)
                    _hold_to_rules(request)
                    reply = await self._audited(call, request, partial(handler, request, call))
                    serving.outcome.reply = encode(reply)
                finally:
                    self.admission.leave(caller)

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
        """Serve a call with many replies. Each is sent before the next is asked for: a slow reader slows its source."""
        allowed = _shorter(self.limits.seconds_for(method), seconds)

        async def act(serving: _Serving) -> None:
            async with asyncio.timeout(self.limits.read_seconds):
                call = await self._identify(serving, method, envelope, allowed)
                request = await self._checked_request(serving, call, receive)
            handler = self._registry.streaming(method)
            if handler is None:
                raise _unimplemented(method)
            _hold_to_rules(request)

            async def pass_on() -> None:
                async with (
                    self.streams.opened(
                        _line_of(call),
                        self._authorizer.objection(call, request),
                        credential=call.caller.session or call.caller.token,
                        seconds=seconds,
                    ),
                    aclosing(handler(request, call)) as replies,
                ):
                    async for reply in replies:
                        await send(encode(reply))

            await self._audited(call, request, pass_on)

        return await self._serve(protocol, method, envelope, act)

    def note_unknown(self, protocol: str, error: ApiError, started: float) -> None:
        """Count what leads to no method."""
        self._metrics.operation(protocol, None).count(error.code.name, time.monotonic() - started)

    async def _serve(
        self, protocol: str, method: Method, envelope: Envelope, act: Callable[[_Serving], Awaitable[None]]
    ) -> Outcome:
        """Around everything: the trace, and in the end the figures and the log."""
        started = time.monotonic()
        outcome = Outcome(request_id=envelope.request_id)
        serving = _Serving(outcome)
        code = "CANCELLED"  # unless it ends otherwise
        try:
            try:
                with self._tracing.span(method, envelope):
                    try:
                        await act(serving)
                    except Exception as error:
                        raise self._told(error, method, envelope.request_id) from error
            except ApiError as error:
                outcome.error, outcome.reply = error, b""
                if not serving.begun:
                    self._audit.refused(method, envelope, serving.call, serving.request, error)
            code = outcome.error.code.name if outcome.error else "OK"
        finally:
            seconds = time.monotonic() - started
            caller = None
            if serving.call is not None:
                outcome.warnings, outcome.data_age = serving.call.warnings, serving.call.data_age
                caller = serving.call.caller.id
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

    async def _identify(self, serving: _Serving, method: Method, envelope: Envelope, seconds: float) -> Call:
        deadline = time.monotonic() + seconds
        open_to_all = method.scope is Scope.ANYBODY
        if open_to_all:
            self._strangers.take(envelope.origin)
        caller = NOBODY if open_to_all else await self._authenticator.authenticate(envelope)
        call = serving.call = Call(
            request_id=serving.outcome.request_id,
            caller=caller,
            method=method,
            deadline=deadline,
            origin=envelope.origin,
        )
        require_permission_named(call)
        require_for_everything(call.caller)
        if envelope.csrf is not None and not open_to_all:
            require_same_page(call.caller, envelope.csrf)
        return call

    async def _checked_request(self, serving: _Serving, call: Call, receive: Receive) -> Message[Any]:
        request = serving.request = await receive(call)
        if call.warnings:
            self._metrics.ignored_fields.inc()
        self._authorizer.authorize(call, request)
        serving.begun = True
        return request

    async def _audited(self, call: Call, request: Message[Any], act: Callable[[], Awaitable[T]]) -> T:
        await self._audit.before(call, request)
        error: ApiError | None = _GONE
        try:
            result = await act()
            error = None
        except Exception as failure:
            error = of_exception(failure, request_id=call.request_id)
            raise
        finally:
            try:
                await self._audit.after(call, request, error)
            except Exception as failure:  # noqa: BLE001 - it has happened; that it is not written down must be known
                self._log.error("audit of an outcome failed", request_id=call.request_id, error=type(failure).__name__)
        return result

    def _told(self, error: Exception, method: Method, request_id: str) -> ApiError:
        told = of_exception(error, request_id=request_id)
        if isinstance(told, Internal):
            log_defect(self._log, error, method.path, request_id)
        elif not isinstance(error, ApiError):
            # What an API server says of an object may quote it; what is said of the connection does not.
            detail = error.reason if isinstance(error, kube.ApiError) else str(error)
            self._log.warning(
                "failed", request_id=request_id, operation=method.path, error=type(error).__name__, detail=detail
            )
        return told


def _line_of(call: Call) -> CallerId:
    """Whom a request counts against: strangers by where they come from."""
    return CallerId(call.caller.id or f"@{call.origin}")


def _hold_to_rules(request: Message[Any]) -> None:
    if found := violations(request):
        raise InvalidArgument(violations=found)


def _unimplemented(method: Method) -> Unimplemented:
    return Unimplemented(f"{method.service}.{method.name} is not there yet; a later version of Kairship will have it")


def _shorter(ours: float, theirs: float | None) -> float:
    return ours if theirs is None else max(0.0, min(ours, theirs))
