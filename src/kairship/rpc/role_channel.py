"""How a process calls a role: gRPC over TLS, with the token of its own service account.

The entrance passes methods of the API on with it (`Registry`, as their owner), and says for whom. One channel serves
any number of tasks of one event loop, connects by itself and again after a loss. It repeats nothing: the role may have
acted before its answer was lost.
"""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import grpc
import msgspec
from protobuf import Message

from kairship.kube import FileToken
from kairship.process.starting import StartError
from kairship.rpc.beside import take_over
from kairship.rpc.calls import Call
from kairship.rpc.errors import ApiError, DeadlineExceeded, ResourceExhausted, Unavailable
from kairship.rpc.grpc_status import told_by
from kairship.rpc.passing import AskedBy
from kairship.wire import Method

LARGEST_REPLY = 256 << 20
_UNCERTAIN = "look whether a change has come about before you try again"


class RoleAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a role is, and what is needed to call it."""

    target: str
    """host:port, for which its certificate is."""
    ca: Path
    token: Path
    """A token of our service account for the role's audience, renewed by somebody else."""


class RoleChannel:
    def __init__(self, address: RoleAddress, *, role: str) -> None:
        """`role` is what people call it, for messages. To be made inside a running event loop, and closed."""
        self._role = role
        self._token = FileToken(str(address.token))
        try:
            authority = address.ca.read_bytes()
        except OSError as error:
            raise StartError(f"the authority of {role}, {address.ca}, cannot be read: {error.strerror}") from None
        self._channel = grpc.aio.secure_channel(
            address.target,
            grpc.ssl_channel_credentials(authority),
            options=[
                ("grpc.max_receive_message_length", LARGEST_REPLY),
                ("grpc.max_send_message_length", -1),
                # A role that was restarted is back within a second: nobody should wait much longer to notice.
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
        """For the person whose call it is, in the time that it has left."""
        asked = AskedBy.of(call)
        return await self._unary(method, request, call.remaining(), (asked.to_metadata(),), call)

    async def own(self, method: Method, request: Message[Any], *, timeout: float) -> Message[Any]:
        """For this process itself: a method that only our own processes call."""
        return await self._unary(method, request, timeout, (), None)

    async def stream(self, method: Method, request: Message[Any], call: Call) -> AsyncGenerator[Message[Any], None]:
        """Replies as they come, for the person whose call it is."""
        asked = AskedBy.of(call)
        async for reply in self._stream(method, request, (asked.to_metadata(),), timeout=call.remaining()):
            yield reply

    async def own_stream(self, method: Method, request: Message[Any]) -> AsyncGenerator[Message[Any], None]:
        """Replies as they come, for this process itself, until it or the role ends it."""
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
            raise self._told(failure) from None
        if call is not None:
            take_over(await running.trailing_metadata() or (), call)
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
            raise self._told(failure) from None
        finally:
            running.cancel()

    def _credential(self) -> tuple[str, str]:
        return "authorization", f"Bearer {self._token()}"

    def _told(self, failure: grpc.aio.AioRpcError) -> ApiError:
        told = told_by(failure)
        if told is not None:
            return told
        match failure.code():
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return DeadlineExceeded(f"{self._role} did not answer in time; {_UNCERTAIN}")
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return ResourceExhausted(f"{self._role} has too much to do; try again", retry_after=1.0)
            case _:
                return Unavailable(f"{self._role} cannot be reached; {_UNCERTAIN}", retry_after=1.0)
