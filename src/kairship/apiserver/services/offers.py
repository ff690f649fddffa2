"""What an instance can be made of here: the drivers, and the Karmada versions that each offers."""

from collections.abc import Sequence

import msgspec

from kairship.resources import DriverName
from kairship.rpc.errors import InvalidArgument


class Offer(msgspec.Struct, frozen=True):
    """A driver that the controller-manager of this plane has."""

    driver: DriverName
    versions: tuple[str, ...] = ()
    """The newest first. Empty if it takes what it finds."""


EXTERNAL = Offer(DriverName.EXTERNAL)


class Offers:
    def __init__(self, offers: Sequence[Offer]) -> None:
        """The first one is used when nothing is asked for."""
        self.all = tuple(offers)

    def driver(self, asked: str, *, field: str) -> DriverName:
        """The driver that is asked for, the first if none is. Raises `InvalidArgument` about `field`."""
        for offer in self.all:
            if not asked or offer.driver == asked:
                return offer.driver
        known = ", ".join(offer.driver for offer in self.all) or "none"
        raise InvalidArgument(violations=[(field, f"there is no driver {asked!r} here; available: {known}")])

    def check_version(self, driver: DriverName, version: str, *, field: str) -> None:
        """Raises `InvalidArgument` about `field` unless the driver offers the version."""
        offered = next((offer.versions for offer in self.all if offer.driver is driver), ())
        if offered and version not in offered:
            raise InvalidArgument(
                violations=[(field, f"Karmada {version} is not on offer; available: {', '.join(offered)}")]
            )

    @property
    def default_version(self) -> str:
        return next((offer.versions[0] for offer in self.all if offer.versions), "")
