"""A client whose every call passes through interceptors: the fence of a leader, or faults that a test injects.

An interceptor gets the call and a function that makes it, and decides whether, when and how often it is made. It gets
plain calls and the opening of streams alike. The first of several interceptors is the outermost.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from kairship.kube import Client, Connection, RawResponse, RoundTripper, Stream, TokenSource
from kairship.reconcile.leaderelection.leader_term import LeaderTerm, TermEnded

R = TypeVar("R")

Proceed = Callable[[], Awaitable[R]]

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Call(msgspec.Struct, frozen=True):
    """A call that is about to be made."""

    method: str
    path: str

    @property
    def mutating(self) -> bool:
        return self.method not in _SAFE_METHODS


class Interceptor(Protocol):
    async def __call__(self, call: Call, proceed: Proceed[R]) -> R: ...


class InterceptedClient(Client):
    """A `Client` with interceptors. The client that `impersonating` returns has the same ones."""

    def __init__(
        self,
        connection: Connection,
        *,
        interceptors: Sequence[Interceptor],
        timeout: float = 30.0,
        user_agent: str = "kairship",
        token: TokenSource | None = None,
    ) -> None:
        super().__init__(
            connection,
            timeout=timeout,
            user_agent=user_agent,
            token=token,
            wrap_transport=lambda transport: _InterceptedTransport(transport, tuple(interceptors)),
        )


class _InterceptedTransport:
    def __init__(self, transport: RoundTripper, interceptors: tuple[Interceptor, ...]) -> None:
        self._transport = transport
        self._interceptors = interceptors

    async def close(self) -> None:
        await self._transport.close()

    async def request(self, method: str, path: str, **details: Any) -> RawResponse:
        return await self._intercept(
            Call(method, path), lambda: self._transport.request(method, path, **_fresh(details))
        )

    @asynccontextmanager
    async def stream(self, method: str, path: str, **details: Any) -> AsyncIterator[Stream]:
        async with AsyncExitStack() as held:
            yield await self._intercept(
                Call(method, path),
                lambda: held.enter_async_context(self._transport.stream(method, path, **_fresh(details))),
            )

    async def _intercept(self, call: Call, proceed: Proceed[R]) -> R:
        for interceptor in reversed(self._interceptors):
            proceed = partial(interceptor, call, proceed)
        return await proceed()


def _fresh(details: dict[str, Any]) -> dict[str, Any]:
    """Copies the headers for each time that a call is made: sending may add to them."""
    return {**details, "headers": details["headers"].copy()}


class FencedBy:
    """Lets a mutating call through only while the term lasts, and gives up waiting for its reply when the term ends.

    So a call that had to wait, for a connection or because the process was suspended, is not made while a successor
    leads. A request that had been sent by then cannot be taken back.
    """

    def __init__(self, term: LeaderTerm) -> None:
        self._term = term

    async def __call__(self, call: Call, proceed: Proceed[R]) -> R:
        if not call.mutating:
            return await proceed()
        self._term.check()
        running = asyncio.ensure_future(proceed())
        try:
            while not running.done():
                await asyncio.wait((running,), timeout=self._term.remaining())
                # A renewal may have extended the term meanwhile: then the call may take longer than was left at first.
                if not running.done() and not self._term.valid:
                    raise TermEnded(
                        f"term {self._term.number} of {self._term.scope} ended during {call.method} {call.path}"
                    )
            return running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
