"""What a caller may see: every list, count and watch that is filtered is held to this, also in the roles behind the
entrance, which cannot ask the bindings themselves.
"""

from collections.abc import Sequence

import msgspec

from kairship.resources import Reach, is_reserved


class Visible(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces of an instance that a caller may see objects in."""

    namespaces: frozenset[str] | None = None
    """None for all there are."""
    reserved: bool = False
    """Whether those in which Karmada keeps its own things are among them."""

    def to_list(self, asked: str | None) -> Sequence[str | None]:
        """The namespaces that a list goes through, when `asked` is asked for (None for all); None stands for all of
        them at once."""
        if asked is not None:
            return [asked] if self.includes(asked) else []
        if self.namespaces is None:
            return [None]
        return sorted(filter(self.includes, self.namespaces))

    def includes(self, namespace: str) -> bool:
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return self.reserved or not is_reserved(namespace)


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """Decided before the service is called. Without a decision there is nothing in sight."""

    reach: Reach = Reach()
    """Where the caller holds the permission of the method."""
    reserved: Reach = Reach()
    """Where the caller may look into the namespaces in which Karmada keeps its own things."""

    def within(self, instance: str) -> Visible:
        """The namespaces of an instance in sight."""
        held = self.reach
        whole = held.everywhere or instance in held.instances
        return Visible(
            namespaces=None if whole else held.namespaces.get(instance, frozenset()),
            reserved=self.reserved.everywhere or instance in self.reserved.instances,
        )

    def covers(self, other: "Sight") -> bool:
        return self.reach.covers(other.reach) and self.reserved.covers(other.reserved)


EVERYTHING = Sight(reach=Reach(everywhere=True), reserved=Reach(everywhere=True))
