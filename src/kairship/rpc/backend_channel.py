"""The client side of a backend: gRPC over TLS, with the token of this process's own service account.

The entrance forwards methods of the API through it (`service_registry`) and tells the backend who the caller is. One
channel serves any number of tasks of one event loop; it connects and reconnects by itself. It repeats no call, because
the backend may have acted before its answer was lost.
"""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import grpc
import msgspec
from protobuf import Message

from kairship.kube import FileToken
from kairship.process.start_error import StartError
from kairship.rpc.caller_metadata import CallerMetadata
from kairship.rpc.calls import Call
from kairship.rpc.errors import ApiError, DeadlineExceeded, ResourceExhausted, Unavailable
from kairship.rpc.grpc_status import api_error_of
from kairship.rpc.reply_metadata import apply_reply_metadata
from kairship.wire import Method

LARGEST_REPLY = 256 << 20
_UNCERTAIN = "check whether the change was made before you try again"


class BackendAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a backend, and the files that are needed to call it."""

    target: str
    """host:port; the certificate of the backend must be for this host."""
    ca: Path
    token: Path
    """The file with a token of our service account for the backend's audience. Another process renews it."""


class BackendChannel:
    """Calls one backend. Must be made inside a running event loop, and closed."""

    def __init__(self, address: BackendAddress, *, name: str) -> None:
        """`name` is what messages call the backend."""
        self._name = name
        self._token = FileToken(str(address.token))
        try:
            authority = address.ca.read_bytes()
        except OSError as error:
            raise StartError(f"the CA of {name}, {address.ca}, cannot be read: {error.strerror}") from None
        self._channel = grpc.aio.secure_channel(
            address.target,
            grpc.ssl_channel_credentials(authority),
            options=[
                ("grpc.max_receive_message_length", LARGEST_REPLY),
                ("grpc.max_send_message_length", -1),
                # A backend that was restarted is back within a second: a caller should not wait much longer for it.
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
                ("grpc.keepalive_time_ms", 10_000),
                ("grpc.keepalive_timeout_ms", 5_000),
                ("grpc.http2.max_pings_without_data", 0),
                ("grpc.keepalive_permit_without_calls", 1),
            ],
        )

    async def close(self) -> None:
        await self._channel.close()

    async def unary(self, method: Method, request: Message[Any], call: Call) -> Message[Any]:
        """Calls a method on behalf of the caller of `call`, within the time that `call` has left."""
        metadata = (CallerMetadata.of(call).to_metadata(),)
        return await self._unary(method, request, call.remaining(), metadata, call)

    async def internal_unary(self, method: Method, request: Message[Any], *, timeout: float) -> Message[Any]:
        """Calls an internal method, which only our own processes call, as this process itself."""
        return await self._unary(method, request, timeout, (), None)

    async def stream(self, method: Method, request: Message[Any], call: Call) -> AsyncGenerator[Message[Any], None]:
        """Yields the replies of a streaming method on behalf of the caller of `call`."""
        metadata = (CallerMetadata.of(call).to_metadata(),)
        async for reply in self._stream(method, request, metadata, timeout=call.remaining()):
            yield reply

    async def internal_stream(self, method: Method, request: Message[Any]) -> AsyncGenerator[Message[Any], None]:
        """Yields the replies of an internal streaming method, until this process or the backend ends it."""
        async for reply in self._stream(method, request, (), timeout=None):
            yield reply

    async def _unary(
        self,
        method: Method,
        request: Message[Any],
        timeout: float,
        metadata: tuple[tuple[str, bytes], ...],
        call: Call | None,
    ) -> Message[Any]:
        invoke: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(method.path)
        running = invoke(request.to_binary(), timeout=timeout, metadata=(self._credential(), *metadata))
        try:
            reply = await running
        except grpc.aio.AioRpcError as failure:
            raise self._error_of(failure) from None
        if call is not None:
            apply_reply_metadata(await running.trailing_metadata() or (), call)
        return method.reply.from_binary(reply)

    async def _stream(
        self,
        method: Method,
        request: Message[Any],
        metadata: tuple[tuple[str, bytes], ...],
        *,
        timeout: float | None,
    ) -> AsyncGenerator[Message[Any], None]:
        invoke: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self._channel.unary_stream(method.path)
        running = invoke(request.to_binary(), timeout=timeout, metadata=(self._credential(), *metadata))
        try:
            async for reply in running:
                yield method.reply.from_binary(reply)
        except grpc.aio.AioRpcError as failure:
            raise self._error_of(failure) from None
        finally:
            running.cancel()

    def _credential(self) -> tuple[str, str]:
        return "authorization", f"Bearer {self._token()}"

    def _error_of(self, failure: grpc.aio.AioRpcError) -> ApiError:
        error = api_error_of(failure)
        if error is not None:
            return error
        match failure.code():
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return DeadlineExceeded(f"{self._name} did not answer in time; {_UNCERTAIN}")
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return ResourceExhausted(f"{self._name} is overloaded; try again", retry_after=1.0)
            case _:
                return Unavailable(f"{self._name} cannot be reached; {_UNCERTAIN}", retry_after=1.0)
