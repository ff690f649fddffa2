"""A client whose every call passes through interceptors: the fence of a leader, or faults that a test injects.

An interceptor is handed the call and the way to carry it out, and decides: before, after, not at all, twice. It is
given plain calls and the opening of streams alike. The first of several is the outermost.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from kairship.kube import Client, Connection, Exchanges, Impersonation, RawResponse, Stream, TokenSource
from kairship.reconcile.term import LeaderTerm, TermEnded

R = TypeVar("R")

Proceed = Callable[[], Awaitable[R]]

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Call(msgspec.Struct, frozen=True):
    """A call that is about to be made."""

    method: str
    path: str

    @property
    def mutating(self) -> bool:
        return self.method not in _READING


class Interceptor(Protocol):
    async def __call__(self, call: Call, proceed: Proceed[R]) -> R: ...


class InterceptedClient(Client):
    """A `Client` with interceptors around it. What `impersonating` returns has the same ones."""

    def __init__(
        self,
        connection: Connection,
        *,
        interceptors: Sequence[Interceptor],
        timeout: float = 30.0,
        user_agent: str = "kairship",
        impersonate: Impersonation | None = None,
        token: TokenSource | None = None,
    ) -> None:
        super().__init__(
            connection,
            timeout=timeout,
            user_agent=user_agent,
            impersonate=impersonate,
            token=token,
            around=lambda transport: _InterceptedTransport(transport, tuple(interceptors)),
        )


class _InterceptedTransport:
    def __init__(self, transport: Exchanges, interceptors: tuple[Interceptor, ...]) -> None:
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
    """For each time that a call is made: sending may add to its headers."""
    return {**details, "headers": details["headers"].copy()}


class FencedBy:
    """Lets a change through only while the term lasts, and gives up waiting for its reply when the term ends.

    So a change that had to wait, for a connection or because the process was stopped, is not made under a successor.
    What had been sent by then was in flight: that much no client can take back.
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
                # A renewal meanwhile has moved the end on: then the call may take longer than was left at first.
                if not running.done() and not self._term.valid:
                    raise TermEnded(
                        f"term {self._term.number} of {self._term.scope} ended during {call.method} {call.path}"
                    )
            return running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
