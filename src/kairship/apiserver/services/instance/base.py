"""What all parts of the Instance service share, and how they change the spec of an instance."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from protobuf import Message

from kairship.apiserver.services.available_drivers import AvailableDrivers
from kairship.apiserver.services.instance.kubeconfig_settings import KubeconfigSettings
from kairship.apiserver.services.instance_clients import FIELD_MANAGER, InstanceClients
from kairship.kube import retry_on_conflict
from kairship.reconcile import jittered
from kairship.resources import DriverName
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, FailedPrecondition
from kairship.rpc.resource_cache import ResourceCaches, SeenInstance
from kairship.wire import Method

_ATTEMPTS = 20
_RETRY_INTERVAL = 0.02

Change = Callable[[SeenInstance], dict[str, Any] | None]
"""Makes the spec fields to patch from the current instance; None to change nothing. Raises an `ApiError` to refuse."""


class OwnCalls(Protocol):
    """The part of `BackendChannel` that makes calls in the name of this process."""

    async def internal_unary(self, method: Method, request: Message[Any], *, timeout: float) -> Message[Any]: ...


class InstanceServiceBase:
    def __init__(
        self,
        caches: ResourceCaches,
        clients: InstanceClients,
        drivers: AvailableDrivers,
        settings: KubeconfigSettings,
        ghippo: OwnCalls | None = None,
    ) -> None:
        """`ghippo` makes calls to global management in the name of this process; None if this plane has none."""
        self._caches = caches
        self._clients = clients
        self._drivers = drivers
        self._settings = settings
        self._ghippo = ghippo

    async def _change(self, name: str, change: Change, call: Call) -> SeenInstance:
        """Patches the spec of an instance. `change` gets the latest version, and is called again after a conflict."""
        resource = self._caches.instances.resource

        async def write() -> SeenInstance:
            current = await self._caches.instances.require_latest(name, call)
            if current.metadata.deletion_timestamp is not None:
                raise FailedPrecondition(f"instance {name} is being deleted; nothing about it can change any more")
            if (spec := change(current)) is None:
                return current
            patch = {"metadata": {"resourceVersion": current.metadata.resource_version}, "spec": spec}
            changed = await self._caches.client.typed(SeenInstance).patch(
                resource, name, patch, field_manager=FIELD_MANAGER, timeout=patience(call)
            )
            await self._caches.instances.written(name, changed.metadata.resource_version, call)
            return changed

        # A conflict is usually due to a controller that has written the status.
        return await retry_on_conflict(
            write,
            attempts=_ATTEMPTS,
            between=lambda: asyncio.sleep(jittered(_RETRY_INTERVAL, spread=1.0)),
            exhausted=Aborted(f"instance {name} is being changed by others at the same time; read it and try again"),
        )


def refuse_adopted(instance: SeenInstance, what: str) -> None:
    """Raises `FailedPrecondition` for an adopted instance: its operator runs that Karmada, and Kairship does not."""
    if instance.spec.driver is DriverName.EXTERNAL:
        name = instance.metadata.name
        raise FailedPrecondition(f"instance {name} was adopted: {what} where that Karmada is run")
