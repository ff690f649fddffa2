"""When access tokens were last used, told to global management from time to time.

A token that is used a thousand times a second is one entry. What cannot be told is told later; what is lost with the
process is a minute of "last used".
"""

import asyncio
import time
from collections.abc import Callable
from itertools import islice

import structlog

from kairship.gen.kairship.internal.v1.directory_pb import NoteTokenUsesRequest, TokenUse
from kairship.rpc.errors import ApiError
from kairship.rpc.role_channel import RoleChannel
from kairship.wire import internal_methods

TELL_EVERY = 30.0
MOST_WAITING = 20_000
_BATCH = 500
_TIMEOUT = 10.0
_NOTE = "/kairship.internal.v1.Directory/NoteTokenUses"

log = structlog.get_logger(__name__)


class TokenUses:
    def __init__(self, channel: RoleChannel, *, wall: Callable[[], float] = time.time) -> None:
        self._channel = channel
        self._wall = wall
        self._waiting: dict[str, int] = {}

    def note(self, token: str) -> None:
        if token in self._waiting or len(self._waiting) < MOST_WAITING:
            self._waiting[token] = int(self._wall())

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(TELL_EVERY)
            try:
                await self.tell()
            except ApiError as error:
                log.warning("uses of access tokens could not be told", error=error.message)

    async def tell(self) -> None:
        method = internal_methods()[_NOTE]
        while self._waiting:
            some = dict(islice(self._waiting.items(), _BATCH))
            uses = [TokenUse(id=token, at=at) for token, at in some.items()]
            await self._channel.own(method, NoteTokenUsesRequest(uses=uses), timeout=_TIMEOUT)
            for token, at in some.items():
                if self._waiting.get(token) == at:
                    del self._waiting[token]
