"""The protocol of all drivers, and the data that it exchanges.

The protocol must fit drivers as different as processes on this machine, the karmada-operator, and a Karmada that its
owner runs elsewhere. Hence capabilities instead of assumptions, and steps instead of one long call.
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
    """The driver cannot do what was requested; the message says what to do instead."""


class AdoptRefused(DriverError):  # noqa: N818 -- says what is the case
    """The existing Karmada must not be adopted; trying again helps only after its owner has changed something."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver can do with its instances."""

    can_configure: bool
    can_restart: bool
    can_upgrade: bool
    can_backup: bool
    can_destroy: bool
    owns_ca: bool


class DesiredInstance(msgspec.Struct, frozen=True):
    """The desired state of an instance."""

    uid: str
    name: str
    settings: KarmadaSettings


class ComponentHealth(msgspec.Struct, frozen=True):
    """The health of one component, with the reason if it is not healthy."""

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
    """Creates, changes and deletes instances. Every sequence of steps is idempotent."""

    @property
    def capabilities(self) -> Capabilities: ...

    def versions(self) -> Sequence[str]:
        """The Karmada versions that can be installed, newest first."""
        ...

    async def converge(self, desired: DesiredInstance) -> Sequence[Step]:
        """Creates the instance, or changes its settings to the desired ones. Refuses a change of version."""
        ...

    async def upgrade(self, desired: DesiredInstance) -> Sequence[Step]:
        """Changes the version, component by component, after a snapshot. After a failure resume it or ``roll_back``.

        Refuses to go to an older version.
        """
        ...

    async def roll_back(self, desired: DesiredInstance) -> Sequence[Step]:
        """Undoes an upgrade that has begun and not ended: restores data and components as they were before it."""
        ...

    async def delete(self, uid: str) -> Sequence[Step]:
        """Deletes the instance and leaves nothing: no process, no file, no key."""
        ...

    async def connection(self, uid: str) -> Connection:
        """Returns a connection to the instance with all permissions."""
        ...

    async def renew_credential(self, uid: str) -> Connection | None:
        """Returns the connection with a new credential for the same instance.

        None if this driver does not renew it here: the steps do, or the owner of the Karmada must.
        """
        ...

    async def health(self, uid: str) -> Sequence[ComponentHealth]: ...

    async def restart(self, uid: str, components: Collection[str]) -> None:
        """Restarts those of the components that run. Only with the capability ``can_restart``."""
        ...

    async def backup(self, uid: str, directory: Path) -> Backup:
        """Writes a backup of the running instance into a directory that holds none yet."""
        ...

    async def restore(self, desired: DesiredInstance, backup: Path) -> Sequence[Step]:
        """Restores the instance's data from the backup in that directory, and converges to the desired settings.

        Only the data comes from the backup: the settings may have changed since, and stay as desired.
        """
        ...
