"""The internal service AuditTrail: appends the audit events of other processes to the audit log."""

from protobuf.wkt import Empty

from kairship.gen.kairship.internal.v1.audit_pb import AppendRequest, Event
from kairship.ghippo.audit import AuditLog, Entry
from kairship.ghippo.database import Database
from kairship.ghippo.errors import InvalidArgument
from kairship.ghippo.identifiers import Now, now
from kairship.rpc.calls import Call

_MAX_EVENTS = 1000
_MAX_ID = 64


class AuditTrail:
    def __init__(self, database: Database, audit: AuditLog, *, clock: Now = now) -> None:
        self._database = database
        self._audit = audit
        self._now = clock

    async def append(self, request: AppendRequest, call: Call) -> Empty:
        if len(request.events) > _MAX_EVENTS:
            raise InvalidArgument(f"a request has at most {_MAX_EVENTS} events; send fewer at a time", field="events")
        if any(not 1 <= len(event.id) <= _MAX_ID or not event.id.isascii() for event in request.events):
            raise InvalidArgument(f"every event needs an id of 1 to {_MAX_ID} ASCII characters", field="events.id")
        events = {event.id: _entry(event) for event in request.events}
        await self._database.write(lambda connection: self._audit.receive(connection, events, at=self._now()))
        return Empty()


def _entry(event: Event) -> Entry:
    return Entry(
        at=event.at,
        action=event.action,
        user_id=event.user_id,
        user_name=event.user_name,
        address=event.address,
        instance=event.instance,
        namespace=event.namespace,
        object=event.object,
        outcome=event.outcome,
        message=event.message,
        request_id=event.request_id,
    )
