"""The client of one API server.

A `Client` belongs to one event loop and may be used by any number of its tasks at once. Between calls it keeps nothing
but its open connections and what discovery has learned. It retries nothing (`transport` explains the one exception)
and caches no object: the reflectors and work queues above it do both.
"""

from typing import TypeVar

from kairship.kube.decoding import Object
from kairship.kube.reading import Reader
from kairship.kube.writing import Writer

T = TypeVar("T")


class TypedClient(Reader[T], Writer[T]):
    """Every verb of one API server as one identity, with objects decoded as `T`. `Client.typed` makes one."""


class Client(TypedClient[Object]):
    """Every verb of one API server as one identity, with objects as plain dicts.

    async with Client(Connection.from_kubeconfig(path)) as client:
        node = await client.get(kinds.NODES, "node-1")
        usage = await client.typed(NodeUsage).list(NODE_METRICS)
    """

    _shape: type[Object] = dict

    def typed(self, shape: type[T]) -> TypedClient[T]:
        """Returns a view that decodes objects as `shape`. It shares everything else and is cheap to make per call."""
        view: TypedClient[T] = object.__new__(TypedClient)
        self._share_with(view)
        view._shape = shape
        return view

    async def apply_object(
        self,
        obj: Object,
        *,
        field_manager: str,
        force: bool = True,
        namespace: str = "default",
        timeout: float | None = None,
    ) -> Object:
        """Server-side apply of an object of any kind. A namespaced object that names no namespace is of `namespace`."""
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
