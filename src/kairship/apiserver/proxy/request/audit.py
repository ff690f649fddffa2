"""The audit records of proxy requests: everything that changes something, reads of Secrets, exec and the like.

The record of an intent is with the operating system before anything is done, so a worker that is killed in the act
leaves it behind. For exec and for reads it is also on the disk by then. A write waits for the disk of the instance's
etcd anyway, so its record is flushed while the write is on its way, and before anything of the reply is sent.
"""

import asyncio
import time
import uuid

import msgspec

from kairship.access.catalogue.attributes import is_about_secret_data
from kairship.apiserver.audit import Spool, SpoolError
from kairship.apiserver.audit.audit_event import Intent, Outcome, to_line
from kairship.apiserver.audit.recorder import not_written_down
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.request_info import NonResourceRequest, RequestInfo
from kairship.apiserver.proxy.request.target import Target
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import Code, Unavailable

_READ_VERBS = frozenset({"get", "list", "watch"})
_CONNECT_SUBRESOURCES = frozenset({"exec", "attach", "portforward", "proxy"})
_CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    409: Code.ABORTED,
    429: Code.RESOURCE_EXHAUSTED,
    499: Code.CANCELLED,
    504: Code.DEADLINE_EXCEEDED,
}
_REFUSED = frozenset({401, 403})


class PendingRecord(msgspec.Struct, frozen=True):
    """The record of a request that is being carried out; its outcome is still to come."""

    id: str
    stored: asyncio.Future[None]
    """Done when the intent is on the disk."""

    async def wait_stored(self) -> None:
        """Raises `Unavailable` without a time to retry, because the request may have been carried out."""
        try:
            await asyncio.shield(self.stored)
        except SpoolError:
            raise Unavailable(
                "the audit cannot be written, and the request may have been carried out; "
                "look whether it was before you try again"
            ) from None


class ProxyAudit:
    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    def must_record(self, admitted: AdmittedRequest) -> bool:
        return _must_record(admitted.request_info)

    async def begin(self, admitted: AdmittedRequest) -> PendingRecord:
        """Records the intent of a request that `must_record`. If this raises, the request must not be carried out."""
        intent = _intent(admitted.caller, admitted.target, admitted.request_info, admitted.envelope)
        try:
            record = PendingRecord(intent.id, await self._spool.begin(to_line(intent)))
            if not _ends_with_its_reply(admitted):
                await asyncio.shield(record.stored)
        except SpoolError:
            raise not_written_down() from None
        return record

    def complete(self, record: PendingRecord, status: int) -> None:
        self._spool.add(to_line(Outcome(record.id, _code(status))))

    def record_refusal(
        self,
        caller: Caller,
        target: Target,
        request_info: RequestInfo,
        envelope: Envelope,
        status: int,
    ) -> None:
        """Records a request that was refused before anything was done. Other errors than refusals are left out."""
        if status in _REFUSED:
            intent = _intent(caller, target, request_info, envelope)
            self._spool.add(to_line(intent) + to_line(Outcome(intent.id, _code(status))))


def _must_record(request_info: RequestInfo) -> bool:
    if isinstance(request_info, NonResourceRequest):
        return request_info.verb not in _READ_VERBS
    attributes = request_info.attributes
    return (
        attributes.verb not in _READ_VERBS
        or is_about_secret_data(attributes)
        or attributes.subresource in _CONNECT_SUBRESOURCES
    )


def _ends_with_its_reply(admitted: AdmittedRequest) -> bool:
    """Whether it is a write, which has no effect after its reply: then the reply can wait for the record."""
    request_info = admitted.request_info
    if isinstance(request_info, NonResourceRequest) or admitted.is_upgrade:
        return False
    return request_info.is_write and request_info.attributes.subresource not in _CONNECT_SUBRESOURCES


def _intent(caller: Caller, target: Target, request_info: RequestInfo, envelope: Envelope) -> Intent:
    if isinstance(request_info, NonResourceRequest):
        action, namespace, name = f"{request_info.verb} {request_info.path}", "", ""
    else:
        attributes = request_info.attributes
        kind = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
        action = f"{attributes.verb} {kind}" + (f"/{attributes.subresource}" if attributes.subresource else "")
        namespace, name = attributes.namespace, request_info.name
    where = f" in {target.cluster}" if target.cluster else ""
    return Intent(
        id=uuid.uuid4().hex,
        at=int(time.time()),
        action=f"kubernetes.{action}"[:256],
        operation=f"Proxy{where}",
        user_id=caller.id,
        user_name=caller.name,
        address=envelope.origin,
        request_id=envelope.request_id,
        instance=target.instance,
        namespace=namespace[:256],
        object=name[:256],
    )


def _code(status: int) -> int:
    if status < 400:
        return 0
    return int(_CODES.get(status, Code.UNAVAILABLE if status >= 500 else Code.INVALID_ARGUMENT))
