"""What is remembered of requests of the proxy: everything that changes something, reads of Secrets, and terminals."""

import time
import uuid

from kairship.apiserver.audit import Spool
from kairship.apiserver.audit.auditing import remember
from kairship.apiserver.audit.events import Intent, Outcome, to_line
from kairship.apiserver.proxy.asking import Asked, AskedPath
from kairship.apiserver.proxy.target import Target
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import Code

_READS = frozenset({"get", "list", "watch"})
_TERMINALS = frozenset({"exec", "attach", "portforward", "proxy"})
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


class ProxyAudit:
    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    async def before(self, caller: Caller, target: Target, asked: Asked | AskedPath, envelope: Envelope) -> str | None:
        """The id under which it is on the disk; None if it is not worth remembering. If it raises, nothing is done."""
        if not _is_remembered(asked):
            return None
        intent = _intent(caller, target, asked, envelope)
        await remember(self._spool, intent)
        return intent.id

    def after(self, begun: str, status: int) -> None:
        self._spool.add(to_line(Outcome(begun, _code(status))))

    def refused(
        self, caller: Caller, target: Target, asked: Asked | AskedPath, envelope: Envelope, status: int
    ) -> None:
        """It was not even begun."""
        if status in _REFUSED:
            intent = _intent(caller, target, asked, envelope)
            self._spool.add(to_line(intent) + to_line(Outcome(intent.id, _code(status))))


def _is_remembered(asked: Asked | AskedPath) -> bool:
    if isinstance(asked, AskedPath):
        return asked.verb not in _READS
    about = asked.attributes
    return about.verb not in _READS or about.resource == "secrets" or about.subresource in _TERMINALS


def _intent(caller: Caller, target: Target, asked: Asked | AskedPath, envelope: Envelope) -> Intent:
    if isinstance(asked, AskedPath):
        action, namespace, name = f"{asked.verb} {asked.path}", "", ""
    else:
        about = asked.attributes
        kind = f"{about.resource}.{about.group}" if about.group else about.resource
        action = f"{about.verb} {kind}" + (f"/{about.subresource}" if about.subresource else "")
        namespace, name = about.namespace, asked.name
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
