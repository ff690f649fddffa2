"""What a caller may see.

Every list, count and watch that is filtered obeys it. The entrance decides it and passes it on to the backends, which
cannot read the bindings themselves.
"""

from collections.abc import Sequence

import msgspec

from kairship.resources import Coverage, is_reserved


class Visible(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces of an instance in which a caller may see objects."""

    namespaces: frozenset[str] | None = None
    """None for all namespaces."""
    reserved: bool = False
    """Whether the namespaces in which Karmada keeps its own objects are among them."""

    def namespaces_to_list(self, requested: str | None) -> Sequence[str | None]:
        """The namespaces to list for a request of one namespace, or of all (None).

        A None in the result stands for one list of all namespaces at once.
        """
        if requested is not None:
            return [requested] if self.includes(requested) else []
        if self.namespaces is None:
            return [None]
        return sorted(filter(self.includes, self.namespaces))

    def narrowed_to(self, other: "Visible") -> "Visible":
        """The namespaces that are visible in both."""
        limits = [each.namespaces for each in (self, other) if each.namespaces is not None]
        return Visible(
            namespaces=frozenset.intersection(*limits) if limits else None, reserved=self.reserved and other.reserved
        )

    def includes(self, namespace: str) -> bool:
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return self.reserved or not is_reserved(namespace)


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What a reply may be about. It is decided before the service is called; without a decision nothing is in sight."""

    # The name of the field between our processes, which may be of different releases during an upgrade.
    coverage: Coverage = msgspec.field(default=Coverage(), name="reach")
    """Where the caller holds the permission of the method."""
    reserved: Coverage = Coverage()
    """Where the caller may see into the namespaces in which Karmada keeps its own objects."""

    def within(self, instance: str) -> Visible:
        """The namespaces of one instance that are in sight."""
        held = self.coverage
        whole = held.everywhere or instance in held.instances
        return Visible(
            namespaces=None if whole else held.namespaces.get(instance, frozenset()),
            reserved=self.reserved.everywhere or instance in self.reserved.instances,
        )

    def covers(self, other: "Sight") -> bool:
        return self.coverage.covers(other.coverage) and self.reserved.covers(other.reserved)


EVERYTHING = Sight(coverage=Coverage(everywhere=True), reserved=Coverage(everywhere=True))
