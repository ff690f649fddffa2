"""The gRPC server of a backend: it serves the backend's services to those of our processes that may call it.

A call is admitted by the token of the process that makes it (`service_tokens`). Methods of the API are called by the
entrance, which has validated the request, has authorised the caller, and says who the caller is. Internal methods are
called by a process of ours as itself. Every failure reaches the client as an `ApiError`.
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
from kairship.rpc.caller_metadata import METADATA, CallerMetadata
from kairship.rpc.calls import Call, Caller, new_request_id
from kairship.rpc.defects import log_defect
from kairship.rpc.errors import ApiError, Internal, InvalidArgument, Unauthenticated, Unimplemented, of_exception
from kairship.rpc.grpc_status import code_of, trailer_of
from kairship.rpc.reply_metadata import reply_metadata
from kairship.rpc.service_registry import ServiceRegistry
from kairship.rpc.service_tokens import ServiceTokens
from kairship.wire import Method, internal_methods, methods

LARGEST_REQUEST = 32 << 20
LARGEST_METADATA = 4 << 20
MOST_CALLS = 2000
_DEFAULT_TIMEOUT = 60.0
"""The time of a call whose client sets no deadline."""
_GRACE = 10.0

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

log = structlog.get_logger(__name__)


class BackendServer(grpc.GenericRpcHandler):
    """Serves the methods of a `ServiceRegistry` over gRPC."""

    def __init__(
        self,
        registry: ServiceRegistry,
        tokens: ServiceTokens,
        *,
        metrics: CollectorRegistry,
        translate: Callable[[Exception], Exception] = lambda error: error,
    ) -> None:
        """`translate` turns errors of the backend's own into errors of `kairship.rpc.errors`."""
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
        """Serves at `address` and yields the port. In the end, running calls have some seconds to finish."""
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", LARGEST_REQUEST),
                ("grpc.max_send_message_length", -1),
                # The caller comes as metadata, with everything that it may see.
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
                    raise Unimplemented(f"{method.service}.{method.name} is not implemented")
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + call.remaining()):
                    return (await handler(request, call)).to_binary()

            return await self._serve(method, data, context, act)

        return serve

    def _streaming(self, method: Method) -> Callable[[bytes, Context], Awaitable[None]]:
        async def serve(data: bytes, context: Context) -> None:
            async def act(call: Call, request: Message[Any]) -> bytes:
                handler = self._registry.streaming(method)
                if handler is None:
                    raise Unimplemented(f"{method.service}.{method.name} is not implemented")
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
            except Exception as error:  # noqa: BLE001 - the client gets each of them, and the log every defect
                failure = self._api_error(error, method, call.request_id if call else "")
                code = failure.code.name
                await context.abort(code_of(failure), failure.message, (trailer_of(failure),))
            code = "OK"
            context.set_trailing_metadata(reply_metadata(call))
            return reply
        finally:
            self._seconds.labels(method.path, code).observe(time.monotonic() - started)

    async def _admit(self, method: Method, context: Context) -> Call:
        metadata = dict(context.invocation_metadata() or ())
        scheme, _, token = str(metadata.get("authorization", "")).partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated("this server is for processes of the plane; call the apiserver instead")
        account = await self._tokens.account_of(token)
        if method.path in self._internal:
            sender = CallerMetadata(
                caller=Caller(id=f"service:{account}", name=account, authenticated_by="service"),
                origin="",
                request_id=new_request_id(),
            )
        else:
            passed = metadata.get(METADATA)
            if not isinstance(passed, bytes):
                raise Unauthenticated(f"the call has no metadata {METADATA}, so its caller is not known")
            sender = CallerMetadata.from_metadata(passed)
        seconds = context.time_remaining()
        return Call(
            request_id=sender.request_id,
            caller=sender.caller,
            method=method,
            deadline=time.monotonic() + (_DEFAULT_TIMEOUT if seconds is None else seconds),
            origin=sender.origin,
            sight=sender.sight,
        )

    def _api_error(self, error: Exception, method: Method, request_id: str) -> ApiError:
        failure = of_exception(self._translate(error), request_id=request_id)
        if isinstance(failure, Internal):
            log_defect(log, error, method.path, request_id)
        return failure


def _read(method: Method, data: bytes) -> Message[Any]:
    try:
        return method.request.from_binary(data)
    except (ValueError, TypeError, EOFError, RecursionError) as malformed:
        raise InvalidArgument(f"the request cannot be decoded as {method.request.desc().type_name}") from malformed
