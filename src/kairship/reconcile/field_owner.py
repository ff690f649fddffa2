"""The writes of a controller: server-side apply of the fields that it owns, and its finalizers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from kairship.kube import Client, Conflict, NotFound, Object, Resource
from kairship.reconcile.cache.shapes import HasMetadata, Metadata
from kairship.reconcile.results import DONE, Done, Result


class FieldOwner:
    """One controller as a field manager. Its name in managedFields is the same in every process and release."""

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
        """Server-side apply: this controller owns the fields in `obj`; fields that it applied before and that are not
        in `obj` any more are removed.

        With a resourceVersion in its metadata, `Conflict` is raised unless that is still the stored revision.
        """
        return await self._client.apply(
            resource, obj, field_manager=self.name, namespace=namespace, subresource=subresource, timeout=timeout
        )

    async def apply_status(self, resource: Resource, read: Metadata, status: object) -> str | None:
        """Applies these fields of a status. Returns the new revision of the object.

        Returns None if the object has changed since it was read, or is gone: then nothing is written.
        """
        patch = {
            "metadata": {"name": read.name, "uid": read.uid, "resourceVersion": read.resource_version},
            "status": msgspec.to_builtins(status),
        }
        try:
            stored = await self.apply(resource, patch, subresource="status")
        except (Conflict, NotFound):
            return None
        revision: str = stored["metadata"]["resourceVersion"]
        return revision

    async def add_finalizer(self, resource: Resource, obj: HasMetadata, finalizer: str) -> bool:
        """Returns whether the finalizer had to be added. Then the object has changed, which enqueues its key again."""
        if finalizer in obj.metadata.finalizers:
            return False
        await self._set_finalizers(resource, obj, (*obj.metadata.finalizers, finalizer))
        return True

    async def finalize(
        self, resource: Resource, obj: HasMetadata, finalizer: str, clean_up: Callable[[], Awaitable[Result]]
    ) -> Result:
        """Cleans up after an object that is being deleted, and removes the finalizer when that is done."""
        if finalizer not in obj.metadata.finalizers:
            return DONE
        result = await clean_up()
        if isinstance(result, Done):
            rest = tuple(each for each in obj.metadata.finalizers if each != finalizer)
            await self._set_finalizers(resource, obj, rest)
        return result

    async def _set_finalizers(self, resource: Resource, obj: HasMetadata, finalizers: tuple[str, ...]) -> None:
        # The list is written as a whole. The revision protects the finalizers that others have added since it was read.
        meta = obj.metadata
        await self._client.patch(
            resource,
            meta.name,
            {"metadata": {"resourceVersion": meta.resource_version, "finalizers": list(finalizers)}},
            namespace=meta.namespace or None,
            field_manager=self.name,
        )
