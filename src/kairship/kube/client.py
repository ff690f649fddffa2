"""The client of one API server.

A `Client` belongs to one event loop and may be used by any number of its tasks at once; it keeps no state between
calls but its open connections and what discovery has learned. It retries nothing (see `transport` for the one
exception) and caches no object: that is the business of the reflectors and queues above.
"""

import asyncio
from collections.abc import Sequence

from .decoding import Object
from .manifests import load_manifests
from .reading import Reader
from .writing import Writer


class Client(Reader, Writer):
    """Every verb of one API server, as one identity.

    async with Client(Connection.from_kubeconfig(path)) as client:
        node = await client.get(kinds.NODES, "node-1")
    """

    async def apply_object(
        self,
        obj: Object,
        *,
        field_manager: str,
        force: bool = True,
        namespace: str = "default",
        timeout: float | None = None,
    ) -> Object:
        """Server-side apply of an object of any kind. `namespace` is for a namespaced object that names none."""
        resource = await self.discovery.find(obj.get("apiVersion", ""), obj.get("kind", ""))
        own = (obj.get("metadata") or {}).get("namespace")
        return await self.apply(
            resource,
            obj,
            field_manager=field_manager,
            force=force,
            namespace=(own or namespace) if resource.namespaced else None,
            timeout=timeout,
        )

    async def apply_manifest(
        self,
        content: str | bytes,
        *,
        field_manager: str,
        force: bool = True,
        namespace: str = "default",
        timeout: float | None = None,
    ) -> Sequence[Object]:
        """Server-side apply of every object of a YAML file, in its order. `timeout` is for each of them."""
        return [
            await self.apply_object(obj, field_manager=field_manager, force=force, namespace=namespace, timeout=timeout)
            for obj in await asyncio.to_thread(load_manifests, content)
        ]
