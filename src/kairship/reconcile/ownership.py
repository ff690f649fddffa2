"""How a controller writes: as the one owner of its fields, and with its finalizer removed last."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from kairship.kube import Client, Conflict, NotFound, Object, Resource
from kairship.reconcile.results import DONE, Done, Result
from kairship.reconcile.shapes import Metadata, Shaped


class FieldOwner:
    """The writes of one controller. Its name in managedFields is the same in every process and release."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client

    async def apply(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Server-side apply: the fields in `obj` are this controller's, and those that it left out since are gone.

        With a resourceVersion in its metadata only if that is still the stored one (`Conflict`).
        """
        return await self._client.apply(
            resource, obj, field_manager=self.name, namespace=namespace, subresource=subresource, timeout=timeout
        )

    async def apply_status(self, resource: Resource, read: Metadata, status: msgspec.Struct) -> bool:
        """Whether it could be written: not if the object has changed since it was read, or is gone."""
        patch = {
            "metadata": {"name": read.name, "uid": read.uid, "resourceVersion": read.resource_version},
            "status": msgspec.to_builtins(status),
        }
        try:
            await self.apply(resource, patch, subresource="status")
        except (Conflict, NotFound):
            return False
        return True

    async def add_finalizer(self, resource: Resource, obj: Shaped, finalizer: str) -> bool:
        """Whether it had to be added: then the object has changed, and its news wakes the controller again."""
        if finalizer in obj.metadata.finalizers:
            return False
        await self._set_finalizers(resource, obj, (*obj.metadata.finalizers, finalizer))
        return True

    async def finalize(
        self, resource: Resource, obj: Shaped, finalizer: str, clean_up: Callable[[], Awaitable[Result]]
    ) -> Result:
        """For an object that is being deleted: clean up, and let it go only when that is done."""
        if finalizer not in obj.metadata.finalizers:
            return DONE
        result = await clean_up()
        if isinstance(result, Done):
            rest = tuple(each for each in obj.metadata.finalizers if each != finalizer)
            await self._set_finalizers(resource, obj, rest)
        return result

    async def _set_finalizers(self, resource: Resource, obj: Shaped, finalizers: tuple[str, ...]) -> None:
        # The list is written as a whole. With the revision that it was read at, nobody else's entry can get lost.
        meta = obj.metadata
        await self._client.patch(
            resource,
            meta.name,
            {"metadata": {"resourceVersion": meta.resource_version, "finalizers": list(finalizers)}},
            namespace=meta.namespace or None,
            field_manager=self.name,
        )
