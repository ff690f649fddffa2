"""Follows the directory of global management, so that callers are authenticated from memory.

One stream brings every change, and how far each binding has come (`OutdatedBindings`). It is opened again when it
breaks or goes silent; until then `Identities` is marked as not current. The stream resumes from the last revision, or
begins with a full snapshot.
"""

import asyncio
from contextlib import aclosing
from typing import cast

import structlog

from kairship.access import Identities, OutdatedBindings
from kairship.gen.kairship.internal.v1.directory_pb import (
    FollowRequest,
    FollowResponse,
    LookUpTokenRequest,
    LookUpTokenResponse,
)
from kairship.reconcile import Backoff
from kairship.rpc.backend_channel import BackendChannel
from kairship.rpc.errors import ApiError
from kairship.wire import internal_methods

IDLE_TIMEOUT = 5.0
"""Seconds without a message after which the stream counts as broken; the directory sends one every two seconds."""
_LOOK_UP_TIMEOUT = 5.0
_FOLLOW = "/kairship.internal.v1.Directory/Follow"
_LOOK_UP = "/kairship.internal.v1.Directory/LookUpToken"

log = structlog.get_logger(__name__)


class DirectoryFollower:
    def __init__(self, channel: BackendChannel, identities: Identities, outdated: OutdatedBindings) -> None:
        self._channel = channel
        self._identities = identities
        self._outdated = outdated
        self._bindings_sequence = 0
        """The sequence up to which the directory has told of bindings."""
        self._complete = asyncio.Event()
        self._backoff = Backoff(0.1, 2.0)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        failures = 0
        while True:
            try:
                request = FollowRequest(revision=self._identities.revision, bindings_sequence=self._bindings_sequence)
                async with aclosing(self._channel.internal_stream(internal_methods()[_FOLLOW], request)) as replies:
                    while True:
                        async with asyncio.timeout(IDLE_TIMEOUT):
                            response = cast("FollowResponse", await anext(replies))
                        self._identities.apply(response)
                        self._outdated.expect(response.bindings)
                        self._bindings_sequence = max(self._bindings_sequence, response.bindings_sequence)
                        if response.complete:
                            self._complete.set()
                            failures = 0
            except (ApiError, TimeoutError, StopAsyncIteration) as error:
                self._identities.mark_disconnected()
                if not failures:
                    reason = error.message if isinstance(error, ApiError) else type(error).__name__
                    log.warning("lost contact with the directory of global management", error=reason)
                failures += 1
                await asyncio.sleep(self._backoff.pause(failures))

    async def wait_complete(self) -> None:
        """Returns when the first snapshot is complete: every user, group and token is known."""
        await self._complete.wait()

    async def look_up(self, hash_: bytes) -> bool:
        """Returns whether an access token with this hash exists. If so it is added to the identities."""
        method = internal_methods()[_LOOK_UP]
        request = LookUpTokenRequest(hash=hash_)
        reply = cast(
            "LookUpTokenResponse", await self._channel.internal_unary(method, request, timeout=_LOOK_UP_TIMEOUT)
        )
        if reply.token is None or reply.owner is None:
            return False
        self._identities.add(reply.token, reply.owner)
        return True
