"""gRPC in front of the chain, on a port of its own.

Every method is registered as one whose request is a stream, which on the wire is the same thing: so a request is read
when the chain asks for it, as over REST, and not before it is known who sends it. Messages pass as bytes; protobuf-py
reads and writes them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

import grpc
from protobuf import Message

from kairship.apiserver.chain import Chain, Outcome
from kairship.apiserver.limits import Limits
from kairship.apiserver.origins import HEADER, Origins
from kairship.index import AGE_HEADER
from kairship.rpc.calls import Call, Envelope
from kairship.rpc.errors import InvalidArgument
from kairship.rpc.grpc_status import code_of, trailer_of
from kairship.wire import Method

PROTOCOL = "grpc"
CONNECTION_AGE = 1800.0
CONNECTION_AGE_GRACE = 60.0

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behavior: TypeAlias = Callable[[Any, Context], Awaitable[Any]]


class Handlers(grpc.GenericRpcHandler):
    """What answers a path."""

    def __init__(
        self, chain: Chain, methods: Iterable[Method], *, beside: Mapping[str, Handler], origins: Origins
    ) -> None:
        """`beside` are handlers of gRPC's own services, which anybody may call."""
        self._handlers = dict(beside)
        for method in methods:
            serve = _streaming(chain, method, origins) if method.streams else _unary(chain, method, origins)
            kind = grpc.stream_stream_rpc_method_handler if method.streams else grpc.stream_unary_rpc_method_handler
            self._handlers[method.path] = kind(serve)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "Handler | None":
        return self._handlers.get(handler_call_details.method)


def make_server(handlers: Handlers, limits: Limits) -> grpc.aio.Server:
    """Not listening yet."""
    return grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", limits.message),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", 16 << 10),
            ("grpc.absolute_max_metadata_size", 32 << 10),
            ("grpc.max_concurrent_streams", 1000),
            # Workers share the port, and the kernel deals connections out: they must not last forever on one of them.
            ("grpc.so_reuseport", 1),
            ("grpc.max_connection_age_ms", int(CONNECTION_AGE * 1000)),
            ("grpc.max_connection_age_grace_ms", int(CONNECTION_AGE_GRACE * 1000)),
            # Clients may ask whether we are there, and we ask whether they are, but neither all the time.
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
        ],
        handlers=[handlers],
        maximum_concurrent_rpcs=limits.running + limits.waiting + limits.streams,
    )


def _unary(chain: Chain, method: Method, origins: Origins) -> Behavior:
    async def serve(_: Any, context: Context) -> bytes:
        envelope = _envelope(context, origins)
        receive = _receiving(method, context)
        outcome = await chain.unary(PROTOCOL, method, envelope, receive, _encode, seconds=context.time_remaining())
        await _conclude(context, outcome)
        return outcome.reply

    return serve


def _streaming(chain: Chain, method: Method, origins: Origins) -> Behavior:
    async def serve(_: Any, context: Context) -> None:
        outcome = await chain.stream(
            PROTOCOL,
            method,
            _envelope(context, origins),
            _receiving(method, context),
            _encode,
            _Sending(context).send,
            seconds=context.time_remaining(),
        )
        await _conclude(context, outcome)

    return serve


class _Sending:
    """Replies of a stream, which may be ended in the middle of one.

    gRPC notes that headers were sent when the write is over that brings them. Of a stream that is ended before that it
    would send them again with the status, which its core refuses: the caller would never hear that it has ended. So
    they go first and by themselves, to their end: they wait for no reader.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._begun = False

    async def send(self, message: bytes) -> None:
        if not self._begun:
            self._begun = True
            headers = asyncio.ensure_future(self._context.send_initial_metadata(()))
            try:
                await asyncio.shield(headers)
            finally:
                await asyncio.wait({headers})
        await self._context.write(message)


def _receiving(method: Method, context: Context) -> Callable[[Call], Awaitable[Message[Any]]]:
    async def receive(_: Call) -> Message[Any]:
        data = await context.read()
        if not isinstance(data, bytes):
            raise InvalidArgument("there is no request in this call")
        try:
            return method.request.from_binary(data)
        except (ValueError, TypeError, EOFError, RecursionError) as malformed:
            raise InvalidArgument(f"the request is not a {method.request.desc().type_name}") from malformed

    return receive


async def _conclude(context: Context, outcome: Outcome) -> None:
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


def _envelope(context: Context, origins: Origins) -> Envelope:
    metadata = [(key, value) for key, value in context.invocation_metadata() or () if isinstance(value, str)]
    forwarded = [value for key, value in metadata if key == HEADER.lower()]
    address = unquote(context.peer()).partition(":")[2]  # ipv4:192.0.2.1:50000, ipv6:[2001:db8::1]:50000, unix:
    return Envelope.around(dict(metadata), origins.of(address.rpartition(":")[0].strip("[]"), forwarded))
