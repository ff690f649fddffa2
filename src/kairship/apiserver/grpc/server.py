"""The gRPC server: the methods of the API in front of the chain.

Every method is registered as one with a stream of requests, which is the same on the wire. The chain can then read the
request when it wants to, as over REST, and not before the caller is authenticated. Messages pass as bytes; protobuf-py
decodes and encodes them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

import grpc
from protobuf import Message

from kairship.apiserver.flowcontrol.client_address import HEADER, TrustedProxies
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.pipeline.chain import Chain, Outcome
from kairship.index import AGE_HEADER
from kairship.rpc.calls import Call, Envelope
from kairship.rpc.errors import InvalidArgument
from kairship.rpc.grpc_status import code_of, trailer_of
from kairship.wire import Method

PROTOCOL = "grpc"
CONNECTION_AGE = 1800.0
CONNECTION_AGE_GRACE = 60.0
_HANDSHAKE = 15.0
"""Seconds that a stranger has for TLS and the first frames."""
_IDLE = 300.0
"""Seconds after which a connection without a call is closed; a client connects again by itself."""

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behavior: TypeAlias = Callable[[Any, Context], Awaitable[Any]]


class Handlers(grpc.GenericRpcHandler):
    """The handlers of all methods, by path."""

    def __init__(
        self,
        chain: Chain,
        methods: Iterable[Method],
        *,
        standard: Mapping[str, Handler],
        trusted_proxies: TrustedProxies,
    ) -> None:
        """`standard` are handlers of gRPC's own services, which need no authentication."""
        self._handlers = dict(standard)
        for method in methods:
            serve = (_streaming if method.streams else _unary)(chain, method, trusted_proxies)
            kind = grpc.stream_stream_rpc_method_handler if method.streams else grpc.stream_unary_rpc_method_handler
            self._handlers[method.path] = kind(serve)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "Handler | None":
        return self._handlers.get(handler_call_details.method)


def make_server(handlers: Handlers, limits: Limits) -> grpc.aio.Server:
    """Returns a server that does not listen yet."""
    return grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", limits.message),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", 16 << 10),
            ("grpc.absolute_max_metadata_size", 32 << 10),
            # One connection may not take what all callers share. A connection that resets its streams has to answer a
            # ping after every reset before more of its requests are read.
            ("grpc.max_concurrent_streams", 256),
            ("grpc.http2.ping_on_rst_stream_percent", 100),
            ("grpc.http2.max_requests_per_read", 4),
            ("grpc.http2.max_ping_strikes", 2),
            ("grpc.server_handshake_timeout_ms", int(_HANDSHAKE * 1000)),
            ("grpc.max_connection_idle_ms", int(_IDLE * 1000)),
            # The kernel distributes connections among the workers; a bounded age lets them spread anew.
            ("grpc.so_reuseport", 1),
            ("grpc.max_connection_age_ms", int(CONNECTION_AGE * 1000)),
            ("grpc.max_connection_age_grace_ms", int(CONNECTION_AGE_GRACE * 1000)),
            # Both sides may send keepalive pings, but not too often.
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
        ],
        handlers=[handlers],
        maximum_concurrent_rpcs=limits.running + limits.waiting + limits.streams,
    )


def _unary(chain: Chain, method: Method, trusted_proxies: TrustedProxies) -> Behavior:
    async def serve(_: Any, context: Context) -> bytes:
        envelope = _envelope(context, trusted_proxies)
        receive = _receiver(method, context)
        outcome = await chain.unary(PROTOCOL, method, envelope, receive, _encode, seconds=context.time_remaining())
        await _finish(context, outcome)
        return outcome.reply

    return serve


def _streaming(chain: Chain, method: Method, trusted_proxies: TrustedProxies) -> Behavior:
    async def serve(_: Any, context: Context) -> None:
        outcome = await chain.stream(
            PROTOCOL,
            method,
            _envelope(context, trusted_proxies),
            _receiver(method, context),
            _encode,
            _Sender(context).send,
            seconds=context.time_remaining(),
        )
        await _finish(context, outcome)

    return serve


class _Sender:
    """Sends the replies of a stream, which may be ended in the middle of one.

    gRPC notes that headers are sent when the write ends that carries them. If a stream is ended before that, gRPC sends
    the headers again with the status, which its core refuses: the caller would never learn that the stream has ended.
    The headers are therefore sent first and by themselves, and never cancelled: they wait for no reader.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._headers_sent = False

    async def send(self, message: bytes) -> None:
        if not self._headers_sent:
            self._headers_sent = True
            headers = asyncio.ensure_future(self._context.send_initial_metadata(()))
            try:
                await asyncio.shield(headers)
            finally:
                await asyncio.wait({headers})
        await self._context.write(message)


def _receiver(method: Method, context: Context) -> Callable[[Call], Awaitable[Message[Any]]]:
    async def receive(_: Call) -> Message[Any]:
        data = await context.read()
        if not isinstance(data, bytes):
            raise InvalidArgument("this call has no request message")
        try:
            return method.request.from_binary(data)
        except (ValueError, TypeError, EOFError, RecursionError) as malformed:
            raise InvalidArgument(f"the request is not a {method.request.desc().type_name}") from malformed

    return receive


async def _finish(context: Context, outcome: Outcome) -> None:
    metadata: list[tuple[str, str | bytes]] = [("x-request-id", outcome.request_id)]
    metadata += [("warning", warning.encode("ascii", "backslashreplace").decode()) for warning in outcome.warnings]
    if outcome.data_age is not None:
        metadata.append((AGE_HEADER.lower(), f"{outcome.data_age:.1f}"))
    if outcome.error is None:
        context.set_trailing_metadata(tuple(metadata))
        return
    metadata.append(trailer_of(outcome.error))
    await context.abort(code_of(outcome.error), outcome.error.message, tuple(metadata))


def _encode(message: Message[Any]) -> bytes:
    return message.to_binary()


def _envelope(context: Context, trusted_proxies: TrustedProxies) -> Envelope:
    metadata = [(key, value) for key, value in context.invocation_metadata() or () if isinstance(value, str)]
    forwarded = [value for key, value in metadata if key == HEADER.lower()]
    address = unquote(context.peer()).partition(":")[2]  # ipv4:192.0.2.1:50000, ipv6:[2001:db8::1]:50000, unix:
    client = trusted_proxies.client_address(address.rpartition(":")[0].strip("[]"), forwarded)
    return Envelope.around(dict(metadata), client)
