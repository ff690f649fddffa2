"""gRPC of a role behind the entrance: the services that it owns, for those of our processes that may call it.

A call is admitted by the token of the process that makes it (`service_tokens`). For methods of the API that is the
entrance, which has checked the request and the caller's rights, and says who the caller is; methods that only our own
processes call are made by the process itself. Whatever goes wrong comes out as an `ApiError`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeAlias

import grpc
import structlog
from prometheus_client import CollectorRegistry, Histogram
from protobuf import Message

from kairship.process.certificates import ServerCertificate
from kairship.rpc.beside import told_beside
from kairship.rpc.calls import Call, Caller, new_request_id
from kairship.rpc.defects import log_defect
from kairship.rpc.errors import ApiError, Internal, InvalidArgument, Unauthenticated, Unimplemented, of_exception
from kairship.rpc.grpc_status import code_of, trailer_of
from kairship.rpc.passing import METADATA, AskedBy, asked_by
from kairship.rpc.registry import Registry
from kairship.rpc.service_tokens import ServiceTokens
from kairship.wire import Method, internal_methods, methods

LARGEST_REQUEST = 32 << 20
LARGEST_METADATA = 4 << 20
MOST_CALLS = 2000
SECONDS = 60.0
"""What a call has if whoever makes it says nothing."""
_GRACE = 10.0

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

log = structlog.get_logger(__name__)


class RoleServer(grpc.GenericRpcHandler):
    def __init__(
        self,
        registry: Registry,
        tokens: ServiceTokens,
        *,
        metrics: CollectorRegistry,
        translate: Callable[[Exception], Exception] = lambda error: error,
    ) -> None:
        """`translate` turns errors of the role's own into those of `kairship.rpc`."""
        self._registry = registry
        self._tokens = tokens
        self._translate = translate
        self._methods = {**methods(), **internal_methods()}
        self._internal = frozenset(internal_methods())
        self._seconds = Histogram(
            "kairship_role_call_seconds", "Calls from the entrance.", ("operation", "code"), registry=metrics
        )

    @asynccontextmanager
    async def serving(self, address: str, certificate: ServerCertificate) -> AsyncIterator[int]:
        """At an address, whose port is returned; calls that run in the end have some seconds."""
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", LARGEST_REQUEST),
                ("grpc.max_send_message_length", -1),
                # Who asks comes beside the request, with all that they may see.
                ("grpc.max_metadata_size", LARGEST_METADATA),
                ("grpc.absolute_max_metadata_size", LARGEST_METADATA),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 10_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ],
            handlers=[self],
            maximum_concurrent_rpcs=MOST_CALLS,
        )
        port = server.add_secure_port(address, certificate.grpc_credentials())
        await server.start()
        try:
            yield port
        finally:
            await server.stop(_GRACE)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "Handler | None":
        method = self._methods.get(handler_call_details.method)
        if method is None:
            return None
        if method.streams:
            return grpc.unary_stream_rpc_method_handler(self._streaming(method))
        return grpc.unary_unary_rpc_method_handler(self._unary(method))

    def _unary(self, method: Method) -> Callable[[bytes, Context], Awaitable[bytes]]:
        async def serve(data: bytes, context: Context) -> bytes:
            async def act(call: Call, request: Message[Any]) -> bytes:
                handler = self._registry.unary(method)
                if handler is None:
                    raise Unimplemented(f"{method.service}.{method.name} is not there yet")
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + call.remaining()):
                    return (await handler(request, call)).to_binary()

            return await self._serve(method, data, context, act)

        return serve

    def _streaming(self, method: Method) -> Callable[[bytes, Context], Awaitable[None]]:
        async def serve(data: bytes, context: Context) -> None:
            async def act(call: Call, request: Message[Any]) -> bytes:
                handler = self._registry.streaming(method)
                if handler is None:
                    raise Unimplemented(f"{method.service}.{method.name} is not there yet")
                async with aclosing(handler(request, call)) as replies:
                    async for reply in replies:
                        await context.write(reply.to_binary())
                return b""

            await self._serve(method, data, context, act)

        return serve

    async def _serve(
        self,
        method: Method,
        data: bytes,
        context: Context,
        act: Callable[[Call, Message[Any]], Awaitable[bytes]],
    ) -> bytes:
        started = time.monotonic()
        code, call = "CANCELLED", None
        try:
            try:
                call = await self._admit(method, context)
                reply = await act(call, _read(method, data))
            except Exception as error:  # noqa: BLE001 - each is told to the caller, and defects to the log
                told = self._told(error, method, call.request_id if call else "")
                code = told.code.name
                await context.abort(code_of(told), told.message, (trailer_of(told),))
            code = "OK"
            context.set_trailing_metadata(told_beside(call))
            return reply
        finally:
            self._seconds.labels(method.path, code).observe(time.monotonic() - started)

    async def _admit(self, method: Method, context: Context) -> Call:
        metadata = dict(context.invocation_metadata() or ())
        scheme, _, token = str(metadata.get("authorization", "")).partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated("this is for processes of the plane; people call the apiserver")
        account = await self._tokens.account_of(token)
        if method.path in self._internal:
            asked = AskedBy(
                caller=Caller(id=f"service:{account}", name=account, authenticated_by="service"),
                origin="",
                request_id=new_request_id(),
            )
        else:
            passed = metadata.get(METADATA)
            if not isinstance(passed, bytes):
                raise Unauthenticated("the call does not say for whom it is made")
            asked = asked_by(passed)
        seconds = context.time_remaining()
        return Call(
            request_id=asked.request_id,
            caller=asked.caller,
            method=method,
            deadline=time.monotonic() + (SECONDS if seconds is None else seconds),
            origin=asked.origin,
            sight=asked.sight,
        )

    def _told(self, error: Exception, method: Method, request_id: str) -> ApiError:
        told = of_exception(self._translate(error), request_id=request_id)
        if isinstance(told, Internal):
            log_defect(log, error, method.path, request_id)
        return told


def _read(method: Method, data: bytes) -> Message[Any]:
    try:
        return method.request.from_binary(data)
    except (ValueError, TypeError, EOFError, RecursionError) as malformed:
        raise InvalidArgument(f"the request is not a {method.request.desc().type_name}") from malformed
