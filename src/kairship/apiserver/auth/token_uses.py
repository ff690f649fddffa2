"""Reports to global management when access tokens were last used.

A token that is used a thousand times a second is one entry. What cannot be reported now is reported later. If the
process dies, a minute of "last used" is lost.
"""

import asyncio
import time
from collections.abc import Callable
from itertools import islice

import structlog

from kairship.gen.kairship.internal.v1.directory_pb import NoteTokenUsesRequest, TokenUse
from kairship.rpc.backend_channel import BackendChannel
from kairship.rpc.errors import ApiError
from kairship.wire import internal_methods

REPORT_EVERY = 30.0
MOST_PENDING = 20_000
_BATCH = 500
_TIMEOUT = 10.0
_NOTE = "/kairship.internal.v1.Directory/NoteTokenUses"

log = structlog.get_logger(__name__)


class TokenUses:
    def __init__(self, channel: BackendChannel, *, wall: Callable[[], float] = time.time) -> None:
        self._channel = channel
        self._wall = wall
        self._pending: dict[str, int] = {}

    def note(self, token: str) -> None:
        if token in self._pending or len(self._pending) < MOST_PENDING:
            self._pending[token] = int(self._wall())

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await asyncio.sleep(REPORT_EVERY)
            try:
                await self.report()
            except ApiError as error:
                log.warning("the uses of access tokens could not be reported", error=error.message)

    async def report(self) -> None:
        method = internal_methods()[_NOTE]
        while self._pending:
            some = dict(islice(self._pending.items(), _BATCH))
            uses = [TokenUse(id=token, at=at) for token, at in some.items()]
            await self._channel.internal_unary(method, NoteTokenUsesRequest(uses=uses), timeout=_TIMEOUT)
            for token, at in some.items():
                if self._pending.get(token) == at:
                    del self._pending[token]
