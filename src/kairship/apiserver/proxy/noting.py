"""Writes through the proxy are noted before the writer is answered: the next read by the same caller has to show them.

A reply says which revision a write led to, or which object is gone. One that says neither (a deletion of many, a format
that is not read here) is noted as such, and for a while the caller's reads of that kind go to the instance.
"""

import msgspec

from kairship.apiserver.proxy.asking import Asked
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.services.resources.index_reader import Collected, collected_as
from kairship.index import Written, kind_called, note_write, revision_told
from kairship.index.opening import IndexAccess

_NOT_CHANGING = frozenset({"exec", "attach", "portforward", "proxy", "token", "log"})
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None

    @property
    def is_gone(self) -> bool:
        """An object that is shown once more, while nothing holds it any longer."""
        return bool(self.deletion_timestamp and not self.finalizers and not self.deletion_grace_period_seconds)


class _Details(msgspec.Struct):
    uid: str = ""


class _Reply(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata | None = None
    details: _Details | None = None


_decoder = msgspec.json.Decoder(_Reply)


class NotedWrites:
    def __init__(self, index: IndexAccess, collected: Collected) -> None:
        self._index = index
        self._collected = collected

    def concerns(self, passing: Passing) -> bool:
        """Whether the reply says something that has to be noted, if it is a good one."""
        asked = passing.asked
        if not isinstance(asked, Asked) or self._index.opened is None or "dryRun" in passing.parameters:
            return False
        about = asked.attributes
        changes = asked.changes and about.subresource not in _NOT_CHANGING
        return changes and about.group not in _REVIEWS

    async def note(self, passing: Passing, body: bytes | None) -> bool:
        """Whether what the reply to a write says is noted. None if it cannot be read."""
        asked, target, opened = passing.asked, passing.target, self._index.opened
        if not isinstance(asked, Asked) or opened is None:
            return True
        about = asked.attributes
        cluster = collected_as(self._collected, target.instance, target.cluster)
        if cluster is None:
            return True
        revision, deleted = (0, "") if body is None or about.verb == "deletecollection" else told(about.verb, body)
        written = Written(cluster, kind_called(about.resource, about.group), revision, deleted)
        return await note_write(
            opened.current.writes, passing.caller.id, written, request_id=passing.envelope.request_id
        )


def told(verb: str, body: bytes) -> tuple[int, str]:
    """The revision that a write led to, or the uid of what is gone; neither if the reply does not say."""
    try:
        reply = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 0, ""
    if reply.kind == "Status":
        return 0, reply.details.uid if verb == "delete" and reply.details is not None else ""
    metadata = reply.metadata or _Metadata()
    if metadata.is_gone:
        return 0, metadata.uid
    return revision_told(metadata.resource_version), ""
