"""Changing objects."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, TypeVar, overload

import msgspec

from .decoding import Described, Metadata, Object, decode
from .endpoint import Endpoint
from .errors import NotFound
from .resource import Resource

T = TypeVar("T")

Body = Mapping[str, Any] | msgspec.Struct | msgspec.Raw | bytes
"""An object to send: anything that msgspec encodes, or JSON as it is. A mapping may leave out apiVersion and kind."""

Propagation = Literal["Background", "Foreground", "Orphan"]


class PatchType(StrEnum):
    """How a patch is written."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


_APPLY = "application/apply-patch+yaml"


class Writer(Endpoint):
    """The verbs that change something. None is ever repeated: after a `TransportError` look before writing again."""

    @overload
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
    ) -> Object: ...

    @overload
    async def create(
        self,
        resource: Resource,
        obj: Body,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        as_type: type[T],
        timeout: float | None = None,
    ) -> T: ...

    async def create(
        self,
        resource: Resource,
        obj: Body,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        as_type: type[Any] = dict,
        timeout: float | None = None,
    ) -> Any:
        """A new object, in the namespace given or the one that it names. With `subresource`: a token, an eviction …"""
        body = _encode(resource, obj, subresource)
        home = _namespace(resource, _metadata(body), namespace)
        path = resource.path(namespace=home, name=name, subresource=subresource)
        reply = await self._call("POST", path, params=_managed(field_manager), body=body, timeout=timeout)
        return self._decode(f"POST {path}", reply, as_type)

    @overload
    async def replace(
        self,
        resource: Resource,
        obj: Body,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> Object: ...

    @overload
    async def replace(
        self,
        resource: Resource,
        obj: Body,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        as_type: type[T],
        timeout: float | None = None,
    ) -> T: ...

    async def replace(
        self,
        resource: Resource,
        obj: Body,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        as_type: type[Any] = dict,
        timeout: float | None = None,
    ) -> Any:
        """The whole object anew. With a resourceVersion in it, only if that is still the stored one (`Conflict`)."""
        body = _encode(resource, obj, subresource)
        path = _path(resource, _metadata(body), namespace, subresource)
        reply = await self._call("PUT", path, params=_managed(field_manager), body=body, timeout=timeout)
        return self._decode(f"PUT {path}", reply, as_type)

    @overload
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
    ) -> Object: ...

    @overload
    async def apply(
        self,
        resource: Resource,
        obj: Body,
        *,
        field_manager: str,
        force: bool = True,
        namespace: str | None = None,
        subresource: str | None = None,
        as_type: type[T],
        timeout: float | None = None,
    ) -> T: ...

    async def apply(
        self,
        resource: Resource,
        obj: Body,
        *,
        field_manager: str,
        force: bool = True,
        namespace: str | None = None,
        subresource: str | None = None,
        as_type: type[Any] = dict,
        timeout: float | None = None,
    ) -> Any:
        """Server-side apply: the fields in `obj` become `field_manager`'s; those it leaves out since then are removed.

        Without `force`, a field with another owner and another value is a `Conflict`.
        """
        body = _encode(resource, obj, subresource)
        path = _path(resource, _metadata(body), namespace, subresource)
        params = {"fieldManager": field_manager, "force": "true" if force else "false"}
        reply = await self._call("PATCH", path, params=params, body=body, content_type=_APPLY, timeout=timeout)
        return self._decode(f"PATCH {path}", reply, as_type)

    @overload
    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes,
        *,
        patch_type: PatchType = PatchType.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> Object: ...

    @overload
    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes,
        *,
        patch_type: PatchType = PatchType.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        as_type: type[T],
        timeout: float | None = None,
    ) -> T: ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes,
        *,
        patch_type: PatchType = PatchType.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        as_type: type[Any] = dict,
        timeout: float | None = None,
    ) -> Any:
        """A change written as a patch: a mapping for MERGE and STRATEGIC, a sequence of operations for JSON."""
        body = patch if isinstance(patch, bytes) else msgspec.json.encode(patch)
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        reply = await self._call(
            "PATCH", path, params=_managed(field_manager), body=body, content_type=patch_type, timeout=timeout
        )
        return self._decode(f"PATCH {path}", reply, as_type)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        missing_ok: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Asks for an object's deletion; finalizers may keep it for longer than this call.

        `uid` and `resource_version` say which one is meant: another of the same name is a `Conflict`.
        """
        path = resource.path(namespace=namespace, name=name)
        body = _delete_options(propagation, grace_period, uid=uid, resource_version=resource_version)
        try:
            await self._call("DELETE", path, body=body, timeout=timeout)
        except NotFound:
            if not missing_ok:
                raise

    async def delete_collection(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Asks for the deletion of everything that matches; without selectors, of everything."""
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        await self._call(
            "DELETE",
            resource.path(namespace=namespace),
            params={name: value for name, value in selectors.items() if value is not None},
            body=_delete_options(propagation, grace_period),
            timeout=timeout,
        )


class _Preconditions(msgspec.Struct, rename="camel", omit_defaults=True):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct, rename="camel", omit_defaults=True):
    propagation_policy: Propagation | None = None
    grace_period_seconds: int | None = None
    preconditions: _Preconditions | None = None


def _delete_options(
    propagation: Propagation | None,
    grace_period: int | None,
    *,
    uid: str | None = None,
    resource_version: str | None = None,
) -> bytes:
    preconditions = _Preconditions(uid, resource_version) if uid or resource_version else None
    return msgspec.json.encode(_DeleteOptions(propagation, grace_period, preconditions))


def _encode(resource: Resource, obj: Body, subresource: str | None) -> bytes:
    if isinstance(obj, bytes):
        return obj
    # What other subresources take is of a kind of its own, a Scale or a TokenRequest.
    if isinstance(obj, Mapping) and subresource in {None, "status"}:
        # Items of a list come without the two.
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    return msgspec.json.encode(obj)


def _metadata(body: bytes) -> Metadata:
    try:
        return decode(body, Described).metadata
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
