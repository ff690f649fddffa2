"""What is to be done from time to time, so that nothing grows for ever.

Doing it twice does no harm.
"""

import structlog

from kairship.ghippo import directory, effective, sessions
from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identifiers import Now, now
from kairship.reconcile import Clock, SystemClock, jittered

EVERY = 600.0
GRAVESTONES_KEPT = 7 * 86400
"""Far longer than a delivery is good for, so that no old one brings a right back."""

RECEIVED_KEPT = 7 * 86400
"""Far longer than a process keeps an event that it could not send."""

log = structlog.get_logger(__name__)


class Upkeep:
    def __init__(
        self,
        database: Database,
        audit: AuditLog,
        *,
        audit_days: int = 365,
        wall: Now = now,
        clock: Clock | None = None,
    ) -> None:
        self._database = database
        self._audit = audit
        self._audit_days = audit_days
        self._wall = wall
        self._clock = clock or SystemClock()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.once()
            except GhippoError as error:
                log.warning("upkeep failed and is tried again", error=str(error))
            await self._clock.sleep(jittered(EVERY))

    async def once(self) -> None:
        at = self._wall()
        await self._database.write(lambda connection: directory.forget(connection, before=at - directory.KEPT))
        await self._database.write(
            lambda connection: effective.forget_revoked(connection, before=at - GRAVESTONES_KEPT)
        )
        await self._database.write(lambda connection: sessions.end_over(connection, at=at))
        await self._database.write(
            lambda connection: self._audit.forget_received(connection, before=at - RECEIVED_KEPT)
        )
        gone = await self._database.write(
            lambda connection: self._audit.let_go(connection, before=at - self._audit_days * 86400)
        )
        if gone:
            log.info("entries of the audit have had their time", entries=gone)
