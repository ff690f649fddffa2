"""What every driver offers, and the data that it takes and gives.

The protocol must carry drivers as different as processes on this machine, the karmada-operator and a Karmada that
somebody else runs. Hence capabilities instead of assumptions, and steps instead of one long call.
"""

import datetime as dt
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from kairship.controlplane.karmada import KarmadaSettings
from kairship.instances.drivers.steps import Step
from kairship.kube import Connection


class DriverError(Exception):
    """The driver cannot do what was asked; the message says what to do instead."""


class AdoptRefused(DriverError):  # noqa: N818 -- says what is the case
    """What exists must not be taken over; trying again helps only after somebody has changed something."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    can_configure: bool
    can_restart: bool
    can_upgrade: bool
    can_backup: bool
    can_destroy: bool
    owns_ca: bool


class DesiredInstance(msgspec.Struct, frozen=True):
    """An instance as it ought to be."""

    uid: str
    name: str
    settings: KarmadaSettings


class ComponentHealth(msgspec.Struct, frozen=True):
    """How one component is doing, with the reason when it is not well."""

    component: str
    healthy: bool
    reason: str = ""


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of one instance and what is needed to restore it."""

    instance_uid: str
    instance_name: str
    version: str
    taken: dt.datetime
    snapshot: str
    sha256: str


class Driver(Protocol):
    """Brings instances into being, changes them and takes them away. Every sequence of steps is idempotent."""

    @property
    def capabilities(self) -> Capabilities: ...

    def versions(self) -> Sequence[str]:
        """The Karmada versions on offer, newest first."""
        ...

    async def converge(self, desired: DesiredInstance) -> Sequence[Step]:
        """Create the instance, or bring its settings to what is desired. Refuses a change of version."""
        ...

    async def upgrade(self, desired: DesiredInstance) -> Sequence[Step]:
        """Change the version, component by component, after a snapshot. On failure resume it or ``roll_back``.

        Refuses to go to an older version.
        """
        ...

    async def roll_back(self, desired: DesiredInstance) -> Sequence[Step]:
        """Undo an upgrade that has begun and not ended: data and components as they were before it."""
        ...

    async def delete(self, uid: str) -> Sequence[Step]:
        """Leave nothing: no process, no file, no key."""
        ...

    async def connection(self, uid: str) -> Connection:
        """How to reach the instance with every right."""
        ...

    async def renewed(self, uid: str) -> Connection | None:
        """The same way with a credential that was made anew and opens the same instance.

        None where that is nothing to ask for: the steps renew it, or its owner must.
        """
        ...

    async def health(self, uid: str) -> Sequence[ComponentHealth]: ...

    async def restart(self, uid: str, components: Collection[str]) -> None:
        """Restart those of the components that run. Only where ``can_restart``."""
        ...

    async def backup(self, uid: str, directory: Path) -> Backup:
        """Write a backup of the running instance into a directory that holds none yet."""
        ...

    async def restore(self, desired: DesiredInstance, backup: Path) -> Sequence[Step]:
        """Bring the instance's data back to a backup in that directory, and its settings to what is desired.

        Only data comes from the backup: settings may have changed since, and are what they are.
        """
        ...
