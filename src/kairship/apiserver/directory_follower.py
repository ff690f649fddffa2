"""Follows global management's directory, so that callers are checked from memory.

One stream, opened again when it breaks or goes silent; meanwhile `Identities` says that it is not current. It goes on
from the revision that it had, or takes everything anew.
"""

import asyncio
from contextlib import aclosing
from typing import cast

import structlog

from kairship.access import Identities
from kairship.gen.kairship.internal.v1.directory_pb import (
    FollowRequest,
    FollowResponse,
    LookUpTokenRequest,
    LookUpTokenResponse,
)
from kairship.reconcile import Backoff
from kairship.rpc.errors import ApiError
from kairship.rpc.role_channel import RoleChannel
from kairship.wire import internal_methods

SILENCE = 5.0
"""Seconds without a word after which nothing is known any more; the directory speaks every two."""
_LOOK_UP_TIMEOUT = 5.0
_FOLLOW = "/kairship.internal.v1.Directory/Follow"
_LOOK_UP = "/kairship.internal.v1.Directory/LookUpToken"

log = structlog.get_logger(__name__)


class DirectoryFollower:
    def __init__(self, channel: RoleChannel, identities: Identities) -> None:
        self._channel = channel
        self._identities = identities
        self._complete = asyncio.Event()
        self._backoff = Backoff(0.1, 2.0)

    async def run(self) -> None:
        """Until cancelled."""
        failures = 0
        while True:
            try:
                request = FollowRequest(revision=self._identities.revision)
                async with aclosing(self._channel.own_stream(internal_methods()[_FOLLOW], request)) as replies:
                    while True:
                        async with asyncio.timeout(SILENCE):
                            told = cast("FollowResponse", await anext(replies))
                        self._identities.take(told)
                        if told.complete:
                            self._complete.set()
                            failures = 0
            except (ApiError, TimeoutError, StopAsyncIteration) as error:
                self._identities.lost()
                if not failures:
                    reason = error.message if isinstance(error, ApiError) else type(error).__name__
                    log.warning("the directory is not heard any more", error=reason)
                failures += 1
                await asyncio.sleep(self._backoff.pause(failures))

    async def wait_complete(self) -> None:
        """Returns when everybody is known."""
        await self._complete.wait()

    async def look_up(self, hash_: bytes) -> bool:
        """Whether there is an access token with this hash; if so it is known from now on."""
        method = internal_methods()[_LOOK_UP]
        request = LookUpTokenRequest(hash=hash_)
        reply = cast("LookUpTokenResponse", await self._channel.own(method, request, timeout=_LOOK_UP_TIMEOUT))
        if reply.token is None or reply.owner is None:
            return False
        self._identities.add(reply.token, reply.owner)
        return True
