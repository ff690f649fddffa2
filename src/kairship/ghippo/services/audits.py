"""The service Audits: reads, exports and verifies the audit log."""

from collections.abc import AsyncIterator
from typing import Any

import sqlalchemy as sa

from kairship.gen.kairship.ghippo.v1alpha1.audit_pb import (
    Audit,
    AuditFilter,
    ExportAuditsRequest,
    ExportAuditsResponse,
    ListAuditsRequest,
    ListAuditsResponse,
    VerifyAuditsRequest,
    VerifyAuditsResponse,
)
from kairship.ghippo.audit import AuditLog, Filter, csv_header
from kairship.ghippo.database import Database
from kairship.rpc.calls import Call

_DEFAULT_LIMIT, _MAX_LIMIT = 100, 1000


def _filter(message: AuditFilter | None) -> Filter:
    if message is None:
        return Filter()
    return Filter(
        since=message.since,
        until=message.until,
        user=message.user,
        action=message.action,
        instance=message.instance,
        failed=message.failed,
    )


def _message(row: sa.Row[Any]) -> Audit:
    return Audit(
        sequence=row.sequence,
        at=row.at,
        user=row.user_id,
        user_name=row.user_name,
        address=row.address,
        action=row.action,
        instance=row.instance,
        namespace=row.namespace,
        object=row.object,
        outcome=row.outcome,
        message=row.message,
        request_id=row.request_id,
    )


class Audits:
    def __init__(self, database: Database, audit: AuditLog) -> None:
        self._database = database
        self._audit = audit

    async def list_audits(self, request: ListAuditsRequest, call: Call) -> ListAuditsResponse:
        limit = min(request.limit or _DEFAULT_LIMIT, _MAX_LIMIT)
        wanted = _filter(request.filter)
        rows = await self._database.read(
            lambda connection: self._audit.find(connection, wanted, before=request.before, limit=limit)
        )
        items = [_message(row) for row in rows]
        return ListAuditsResponse(items=items, next=items[-1].sequence if len(items) == limit else 0)

    async def export_audits(self, request: ExportAuditsRequest, call: Call) -> AsyncIterator[ExportAuditsResponse]:
        wanted, position, piece = _filter(request.filter), 0, csv_header()
        while piece:
            yield ExportAuditsResponse(csv=piece)
            after = position
            piece, position = await self._database.read(
                lambda connection, after=after: self._audit.page_of_csv(connection, wanted, after=after)  # type: ignore[misc]
            )

    async def verify_audits(self, request: VerifyAuditsRequest, call: Call) -> VerifyAuditsResponse:
        found = await self._database.read(self._audit.verify)
        return VerifyAuditsResponse(
            intact=found.broken_at is None, broken_at=found.broken_at or 0, entries=found.entries
        )
