"""The drivers that new instances can use on this plane, and the Karmada versions that each offers."""

from collections.abc import Sequence

import msgspec

from kairship.resources import DriverName
from kairship.rpc.errors import InvalidArgument


class AvailableDriver(msgspec.Struct, frozen=True):
    """A driver of this plane's controller-manager."""

    driver: DriverName
    versions: tuple[str, ...] = ()
    """The Karmada versions, the newest first; empty for a driver that takes whatever version it finds."""


EXTERNAL = AvailableDriver(DriverName.EXTERNAL)


class AvailableDrivers:
    def __init__(self, drivers: Sequence[AvailableDriver]) -> None:
        """The first driver is the default."""
        self.all = tuple(drivers)

    def driver(self, name: str, *, field: str) -> DriverName:
        """Returns the driver of this name, the default if the name is empty. Raises `InvalidArgument` about `field`."""
        for each in self.all:
            if not name or each.driver == name:
                return each.driver
        known = ", ".join(each.driver for each in self.all) or "none"
        raise InvalidArgument(violations=[(field, f"there is no driver {name!r} here; available: {known}")])

    def check_version(self, driver: DriverName, version: str, *, field: str) -> None:
        """Raises `InvalidArgument` about `field` unless the driver offers the version."""
        offered = next((each.versions for each in self.all if each.driver is driver), ())
        if offered and version not in offered:
            raise InvalidArgument(
                violations=[(field, f"Karmada {version} is not on offer; available: {', '.join(offered)}")]
            )

    @property
    def default_version(self) -> str:
        return next((each.versions[0] for each in self.all if each.versions), "")
