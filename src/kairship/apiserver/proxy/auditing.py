"""What is remembered of requests of the proxy: everything that changes something, reads of Secrets, and terminals.

Before anything is done, the system has it: whoever is killed in the act leaves it behind. Of terminals and reads it is
on the disk by then. Of a write, which waits for a disk elsewhere, it is while the write is on its way, and before
anything of the reply is sent.
"""

import asyncio
import time
import uuid

import msgspec

from kairship.apiserver.audit import Spool, SpoolError
from kairship.apiserver.audit.auditing import not_written_down
from kairship.apiserver.audit.events import Intent, Outcome, to_line
from kairship.apiserver.proxy.asking import Asked, AskedPath
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.proxy.target import Target
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import Code, Unavailable

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


class Begun(msgspec.Struct, frozen=True):
    """Something that is being done, and written down."""

    id: str
    stored: asyncio.Future[None]

    async def on_disk(self) -> None:
        """Raises `Unavailable`, without a time to come back: it may have been done."""
        try:
            await asyncio.shield(self.stored)
        except SpoolError:
            raise Unavailable(
                "this may have been done, and cannot be written down; look whether it was before you try again"
            ) from None


class ProxyAudit:
    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    def remembers(self, passing: Passing) -> bool:
        """Whether it is worth remembering."""
        return _is_remembered(passing.asked)

    async def before(self, passing: Passing) -> Begun:
        """For what it `remembers`. If it raises, nothing is done."""
        intent = _intent(passing.caller, passing.target, passing.asked, passing.envelope)
        try:
            begun = Begun(intent.id, await self._spool.begin(to_line(intent)))
            if not _is_write(passing):
                await asyncio.shield(begun.stored)
        except SpoolError:
            raise not_written_down() from None
        return begun

    def after(self, begun: Begun, status: int) -> None:
        self._spool.add(to_line(Outcome(begun.id, _code(status))))

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


def _is_write(passing: Passing) -> bool:
    """Which is over when it is answered."""
    if isinstance(passing.asked, AskedPath) or passing.upgrades:
        return False
    return passing.asked.changes and passing.asked.attributes.subresource not in _TERMINALS


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
