"""What all parts of the Instance service work with: the instances, and how one of them is changed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec
from protobuf import Message

from kairship.apiserver.services.offers import Offers
from kairship.apiserver.services.reach import FIELD_MANAGER, Reach
from kairship.kube import Conflict
from kairship.reconcile import jittered
from kairship.resources import DriverName
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, FailedPrecondition, Unavailable
from kairship.rpc.own_kinds import OwnKinds, SeenInstance
from kairship.wire import Method

_ATTEMPTS = 20
_PAUSE = 0.02

Change = Callable[[SeenInstance], dict[str, Any] | None]
"""From an instance to the fields of its spec that shall be others; None if all is as it should be. May refuse."""


class OwnCalls(Protocol):
    """The part of `RoleChannel` by which this process asks in its own name."""

    async def own(self, method: Method, request: Message[Any], *, timeout: float) -> Message[Any]: ...


class PublicAddress(msgspec.Struct, frozen=True):
    """Where people reach the entrance."""

    url: str
    """https://host:port, without a path."""
    ca: Path | None = None
    """The authority of the certificate that they see there, in PEM; None for one that everybody knows."""

    def authority(self) -> bytes | None:
        """As it is at this moment: it may have been renewed."""
        try:
            return self.ca.read_bytes() if self.ca else None
        except OSError:
            raise Unavailable("the authority of the entrance's certificate cannot be read; tell its operator") from None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform allows."""

    public: PublicAddress | None = None
    """What kubeconfigs lead to; without it none are issued."""

    longest_kubeconfig: int = 24 * 3600
    """For how many seconds a kubeconfig is valid at most."""


class Part:
    def __init__(
        self, own: OwnKinds, reach: Reach, offers: Offers, settings: Settings, ghippo: OwnCalls | None = None
    ) -> None:
        """`ghippo` is asked in the name of this process."""
        self._own = own
        self._reach = reach
        self._offers = offers
        self._settings = settings
        self._ghippo = ghippo

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
