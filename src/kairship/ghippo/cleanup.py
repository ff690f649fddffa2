"""Deletes outdated rows from time to time, so that no table grows for ever. Repeating it does no harm."""

import structlog

from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.delivery import webhooks
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.identity import directory, sessions
from kairship.ghippo.tenancy import effective
from kairship.reconcile import Clock, SystemClock, jittered

EVERY = 600.0
TOMBSTONES_KEPT = 7 * 86400
"""Seconds for which revoked bindings are kept: far longer than a delivery is valid, so none restores a right."""

RECEIVED_KEPT = 7 * 86400
"""Seconds for which ids of received events are kept: far longer than a process keeps an event to send it again."""

log = structlog.get_logger(__name__)


class Cleanup:
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
        """Runs until it is cancelled."""
        while True:
            try:
                await self.run_once()
            except GhippoError as error:
                log.warning("cleanup failed and will be retried", error=str(error))
            await self._clock.sleep(jittered(EVERY))

    async def run_once(self) -> None:
        at = self._wall()
        await self._database.write(
            lambda connection: directory.delete_changes(connection, before=at - directory.CHANGES_KEPT)
        )
        await self._database.write(
            lambda connection: effective.delete_revoked(
                connection, before=at - TOMBSTONES_KEPT, delivered=webhooks.delivered_to_plane(connection)
            )
        )
        await self._database.write(lambda connection: sessions.end_expired(connection, at=at))
        await self._database.write(
            lambda connection: self._audit.delete_received_ids(connection, before=at - RECEIVED_KEPT)
        )
        deleted = await self._database.write(
            lambda connection: self._audit.delete_older(connection, before=at - self._audit_days * 86400)
        )
        if deleted:
            log.info("expired entries of the audit log were deleted", entries=deleted)
