"""The verbs that change objects: create, replace, apply, patch and delete."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from kairship.kube.decoding import Metadata, PartialObjectMetadata, decode
from kairship.kube.endpoint import Endpoint
from kairship.kube.errors import NotFound
from kairship.kube.resource import Resource

T = TypeVar("T")

Body = Mapping[str, Any] | msgspec.Struct | msgspec.Raw | bytes
"""An object to send: anything that msgspec encodes, or JSON as it is. A mapping may leave out apiVersion and kind."""

_MERGE_PATCH = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"


class Writer(Endpoint, Generic[T]):
    """The verbs that change something. Replies are decoded as `T` (see `decoding`).

    The client never repeats a write: after a `TransportError` read the object before you write it again.
    """

    _shape: type[T]

    async def create(
        self,
        resource: Resource,
        obj: Body,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Creates an object in `namespace`, or in the one that the object names.

        With `name` and `subresource` it creates what belongs to an existing object: a token, an eviction …
        """
        body = _encode(resource, obj, subresource)
        home = _namespace(resource, _metadata(body), namespace)
        path = resource.path(namespace=home, name=name, subresource=subresource)
        reply = await self._call("POST", path, params=_managed(field_manager), body=body, timeout=timeout)
        return self._decode(f"POST {path}", reply, self._shape)

    async def replace(
        self,
        resource: Resource,
        obj: Body,
        *,
        namespace: str | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Writes the whole object. If it has a resourceVersion that is not the stored one, this raises `Conflict`."""
        body = _encode(resource, obj, None)
        path = _path(resource, _metadata(body), namespace, None)
        reply = await self._call("PUT", path, params=_managed(field_manager), body=body, timeout=timeout)
        return self._decode(f"PUT {path}", reply, self._shape)

    async def apply(
        self,
        resource: Resource,
        obj: Body,
        *,
        field_manager: str,
        force: bool = True,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Server-side apply: the fields in `obj` become `field_manager`'s, and fields that it no longer names go.

        Without `force`, a field with another owner and another value is a `Conflict`.
        """
        body = _encode(resource, obj, subresource)
        path = _path(resource, _metadata(body), namespace, subresource)
        params = {"fieldManager": field_manager, "force": "true" if force else "false"}
        reply = await self._call("PATCH", path, params=params, body=body, content_type=_APPLY, timeout=timeout)
        return self._decode(f"PATCH {path}", reply, self._shape)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Changes an object by a JSON merge patch: a field that is None in `patch` is removed."""
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        reply = await self._call(
            "PATCH",
            path,
            params=_managed(field_manager),
            body=msgspec.json.encode(patch),
            content_type=_MERGE_PATCH,
            timeout=timeout,
        )
        return self._decode(f"PATCH {path}", reply, self._shape)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        missing_ok: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Asks for the deletion of an object; finalizers may keep it for longer than this call.

        `uid` is a precondition: an object of the same name and another UID is a `Conflict`.
        """
        path = resource.path(namespace=namespace, name=name)
        preconditions = _Preconditions(uid) if uid else None
        try:
            await self._call("DELETE", path, body=msgspec.json.encode(_DeleteOptions(preconditions)), timeout=timeout)
        except NotFound:
            if not missing_ok:
                raise


class _Preconditions(msgspec.Struct):
    uid: str


class _DeleteOptions(msgspec.Struct, omit_defaults=True):
    preconditions: _Preconditions | None = None


def _encode(resource: Resource, obj: Body, subresource: str | None) -> bytes:
    if isinstance(obj, bytes):
        return obj
    # Other subresources take an object of a kind of their own, such as a TokenRequest.
    if isinstance(obj, Mapping) and subresource in {None, "status"}:
        # The items of a list come without apiVersion and kind.
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    return msgspec.json.encode(obj)


def _metadata(body: bytes) -> Metadata:
    try:
        return decode(body, PartialObjectMetadata).metadata
    except msgspec.DecodeError as error:
        raise ValueError(f"not a Kubernetes object: {error}") from error


def _namespace(resource: Resource, metadata: Metadata, namespace: str | None) -> str | None:
    if not resource.namespaced:
        return None
    home = namespace or metadata.namespace
    if not home:
        raise ValueError(f"a {resource.kind} needs a namespace: name one in the call or in the object")
    return home


def _path(resource: Resource, metadata: Metadata, namespace: str | None, subresource: str | None) -> str:
    if not metadata.name:
        raise ValueError(f"this {resource.kind} has no name in its metadata")
    return resource.path(
        namespace=_namespace(resource, metadata, namespace), name=metadata.name, subresource=subresource
    )


def _managed(field_manager: str | None) -> dict[str, str] | None:
    return {"fieldManager": field_manager} if field_manager else None
