"""Records writes through the proxy before the writer is answered, so that its next read of the index has them.

A reply says which revision a write led to, or which object is gone. If it says neither (a deletion of many objects, a
format that is not parsed here), that is recorded instead, and for a while the caller's reads of the kind are forwarded
to the instance.
"""

import msgspec

from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.request_info import ResourceRequest
from kairship.apiserver.services.resources.index_reader import Collected, collected_as
from kairship.index import Write, comparable_revision, kind_called, note_write
from kairship.index.index_access import IndexAccess

_WITHOUT_EFFECT = frozenset({"exec", "attach", "portforward", "proxy", "token", "log"})
"""Subresources that change no object, whatever the verb is."""
_REVIEW_GROUPS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the reply shows the object for the last time: nothing holds it any longer."""
        return bool(self.deletion_timestamp and not self.finalizers and not self.deletion_grace_period_seconds)


class _Details(msgspec.Struct):
    uid: str = ""


class _Reply(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata | None = None
    details: _Details | None = None


_decoder = msgspec.json.Decoder(_Reply)


class OwnWrites:
    def __init__(self, index: IndexAccess, collected: Collected) -> None:
        self._index = index
        self._collected = collected

    def must_record(self, admitted: AdmittedRequest) -> bool:
        """Whether a successful reply has to be recorded."""
        request_info = admitted.request_info
        if (
            not isinstance(request_info, ResourceRequest)
            or self._index.opened is None
            or "dryRun" in admitted.parameters
        ):
            return False
        attributes = request_info.attributes
        has_effect = request_info.is_write and attributes.subresource not in _WITHOUT_EFFECT
        return has_effect and attributes.group not in _REVIEW_GROUPS

    async def record(self, admitted: AdmittedRequest, body: bytes | None) -> bool:
        """Returns whether the write is recorded. `body` is that of the reply; None if it cannot be parsed."""
        request_info, target, opened = admitted.request_info, admitted.target, self._index.opened
        if not isinstance(request_info, ResourceRequest) or opened is None:
            return True
        attributes = request_info.attributes
        cluster = collected_as(self._collected, target.instance, target.cluster)
        if cluster is None:
            return True
        revision, deleted = (
            (0, "") if body is None or attributes.verb == "deletecollection" else write_outcome(attributes.verb, body)
        )
        written = Write(cluster, kind_called(attributes.resource, attributes.group), revision, deleted)
        return await note_write(
            opened.current.writes, admitted.caller.id, written, request_id=admitted.envelope.request_id
        )


def write_outcome(verb: str, body: bytes) -> tuple[int, str]:
    """The revision that a write led to, or the uid of the object that is gone; neither if the reply does not say."""
    try:
        reply = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 0, ""
    if reply.kind == "Status":
        return 0, reply.details.uid if verb == "delete" and reply.details is not None else ""
    metadata = reply.metadata or _Metadata()
    if metadata.is_gone:
        return 0, metadata.uid
    return comparable_revision(metadata.resource_version), ""
