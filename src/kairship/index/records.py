"""Makes the record of an object, which is what the index stores of it, from the object's bytes.

An object is stored as the bytes in which the API server sent it, so that replies can be made by joining them. Only
metadata and selectable fields are decoded. The items of a LIST of a built-in kind carry no kind and apiVersion, but
those of a watch do: the index stores objects without the two (`bare`), and `typed` puts them back.

The values of Secrets and the manifests inside Works never enter the index. It keeps their metadata (without the
annotation in which `kubectl apply` repeats the whole object), a Secret's type and a Work's status.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from kairship.index.images import has_images, images_of
from kairship.index.selectable_fields import kind_name, read_fields, selectable
from kairship.index.tokens import field_token, image_token, label_tokens, namespace_token, owner_token
from kairship.kube import Resource

LARGEST_REVISION = 2**63 - 1
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NEVER_IN_NAMES = frozenset("/\0")
_KEPT_OF = {"secrets": ("metadata", "type"), "works.work.karmada.io": ("metadata", "status")}


class BadObjectError(Exception):
    """A server sent something that is not an object of the kind. The message says what is wrong, and quotes nothing."""


class Record(msgspec.Struct, frozen=True):
    """One object, ready to be stored."""

    key: str
    """`namespace/name`, or the name alone. API servers list in the order of these keys."""
    namespace: str
    name: str
    uid: str
    revision: int
    created: int
    """Seconds since 1970."""
    tokens: frozenset[str]
    bare: bool
    body: bytes


class _Owner(msgspec.Struct):
    uid: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str
    uid: str = ""
    namespace: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Object(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    kind: str = ""
    api_version: str = ""


_described = msgspec.json.Decoder(_Object)


class RecordBuilder:
    """Makes the records of the objects of one kind."""

    def __init__(self, resource: Resource, *, declared_fields: tuple[str, ...] = ()) -> None:
        self.resource = resource
        self._kind = kind_name(resource)
        self._fields = selectable(self._kind, declared_fields)
        self._has_images = has_images(self._kind)
        self._type = type_of(resource)
        self._kept = _KEPT_OF.get(self._kind)

    def record(self, raw: bytes | msgspec.Raw) -> Record:
        """Raises `BadObjectError`."""
        try:
            obj = _described.decode(raw)
            tokens = set(label_tokens(obj.metadata.labels or {}))
            if self._fields:
                tokens.update(field_token(path, value) for path, value in read_fields(raw, self._fields).items())
            if self._has_images:
                tokens.update(image_token(image) for image in images_of(raw))
        except msgspec.DecodeError as error:
            raise BadObjectError(f"one of the {self._kind} cannot be decoded: {error}") from None
        metadata = obj.metadata
        self._refuse_foreign(obj)
        if metadata.namespace:
            tokens.add(namespace_token(metadata.namespace))
        if any("\0" in text for text in (metadata.uid, *tokens)):
            raise BadObjectError(f"one of the {self._kind} has a NUL character in its uid, a label or a field")
        tokens.update(owner_token(owner.uid) for owner in metadata.owner_references or () if owner.uid)
        body, bare = self._body(raw, has_type=bool(obj.kind))
        return Record(
            key=f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            revision=revision(metadata.resource_version),
            created=_seconds(metadata.creation_timestamp),
            tokens=frozenset(tokens),
            bare=bare,
            body=body,
        )

    def _refuse_foreign(self, obj: _Object) -> None:
        if obj.kind and (obj.kind, obj.api_version) != (self.resource.kind, self.resource.api_version):
            raise BadObjectError(f"an object among the {self._kind} says that it is of another kind")
        if not obj.metadata.name or bool(obj.metadata.namespace) != self.resource.namespaced:
            raise BadObjectError(f"one of the {self._kind} has no name, or a namespace where none belongs")
        if _NEVER_IN_NAMES & {*obj.metadata.name, *obj.metadata.namespace}:
            raise BadObjectError(f"one of the {self._kind} has a name that no API server accepts")

    def _body(self, raw: bytes | msgspec.Raw, *, has_type: bool) -> tuple[bytes, bool]:
        if self._kept is not None:
            return _reduced(raw, self._kept), True
        body = bytes(raw).rstrip()
        if body.startswith(self._type):
            return b"{" + body[len(self._type) :], True
        return body, not has_type


def is_partial(kind: str) -> bool:
    """Whether the index has only a part of these objects, or only some of them. The rest is in their cluster alone."""
    return kind in _KEPT_OF or kind == "events"  # events are kept for a time of our own


@lru_cache(maxsize=4096)
def type_of(resource: Resource) -> bytes:
    """The bytes with which the JSON of a typed object begins."""
    kind, version = msgspec.json.encode(resource.kind), msgspec.json.encode(resource.api_version)
    return b'{"kind":' + kind + b',"apiVersion":' + version + b","


def typed(body: bytes, *, bare: bool, begin: bytes) -> bytes:
    """The stored bytes with kind and apiVersion, as GET and watch return an object. `begin` comes from `type_of`."""
    return begin + body[1:] if bare else body


def revision(text: str) -> int:
    """A resourceVersion as a number. Raises `BadObjectError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and 0 < int(text) <= LARGEST_REVISION):
        raise BadObjectError("a resourceVersion is not a positive number of 63 bits")
    return int(text)


def _reduced(raw: bytes | msgspec.Raw, kept: tuple[str, ...]) -> bytes:
    obj: dict[str, Any] = msgspec.json.decode(raw)
    annotations = obj["metadata"].get("annotations")
    if annotations:
        annotations.pop(_LAST_APPLIED, None)
    return msgspec.json.encode({part: obj[part] for part in kept if part in obj})


def _seconds(timestamp: str | None) -> int:
    if timestamp is None:
        return 0
    try:
        return int(datetime.fromisoformat(timestamp).timestamp())
    except (ValueError, OverflowError):
        raise BadObjectError("a creationTimestamp is not a time") from None
