"""What all parts of the Instance service work with: the instances, and how one of them is changed."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from kairship.apiserver.services.offers import Offers
from kairship.apiserver.services.reach import FIELD_MANAGER, Reach
from kairship.kube import Conflict
from kairship.reconcile import jittered
from kairship.resources import DriverName
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, FailedPrecondition
from kairship.rpc.own_kinds import OwnKinds, SeenInstance

_ATTEMPTS = 20
_PAUSE = 0.02

Change = Callable[[SeenInstance], dict[str, Any] | None]
"""From an instance to the fields of its spec that shall be others; None if all is as it should be. May refuse."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform allows."""

    longest_kubeconfig: int = 24 * 3600
    """For how many seconds a kubeconfig is valid at most."""


class Part:
    def __init__(self, own: OwnKinds, reach: Reach, offers: Offers, settings: Settings) -> None:
        self._own = own
        self._reach = reach
        self._offers = offers
        self._settings = settings

    async def _change(self, name: str, change: Change, call: Call) -> SeenInstance:
        """Change the spec of an instance. `change` sees it as it is at the very moment, and is asked again if that
        has passed."""
        resource = self._own.instances.resource
        for _ in range(_ATTEMPTS):
            current = await self._own.instances.require_latest(name, call)
            if current.metadata.deletion_timestamp is not None:
                raise FailedPrecondition(f"instance {name} is being deleted; nothing about it can change any more")
            if (spec := change(current)) is None:
                return current
            patch = {"metadata": {"resourceVersion": current.metadata.resource_version}, "spec": spec}
            try:
                changed = await self._own.client.patch(
                    resource,
                    name,
                    patch,
                    field_manager=FIELD_MANAGER,
                    as_type=SeenInstance,
                    timeout=patience(call),
                )
            except Conflict:  # most often a controller has written the status
                await asyncio.sleep(jittered(_PAUSE, spread=1.0))
                continue
            await self._own.instances.written(name, changed.metadata.resource_version, call)
            return changed
        raise Aborted(f"instance {name} is being changed by others at the same time; read it and try again")


def refuse_adopted(instance: SeenInstance, what: str) -> None:
    """Of a Karmada that somebody else runs only its owner decides."""
    if instance.spec.driver is DriverName.EXTERNAL:
        name = instance.metadata.name
        raise FailedPrecondition(f"instance {name} was adopted: {what} where that Karmada is run")
