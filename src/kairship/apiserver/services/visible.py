"""What callers may see of instances: every list, count and watch over several of them, or over several namespaces, is
held to this.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from kairship.access import Authoriser, Reach, is_reserved
from kairship.access.namespaces import NEEDED
from kairship.apiserver.authorisation import holder
from kairship.rpc.calls import Call


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


class Sight(Protocol):
    """Asked by services, about the permission of the method that was called."""

    def reach(self, call: Call) -> Reach:
        """The instances, and the namespaces of others, within sight of the caller."""
        ...

    def within(self, instance: str, call: Call) -> Visible:
        """The namespaces of an instance within sight of the caller."""
        ...


class BoundSight:
    """What bindings grant."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    def reach(self, call: Call) -> Reach:
        return self._authoriser.reach(holder(call.caller), call.method.permission)

    def within(self, instance: str, call: Call) -> Visible:
        held = self.reach(call)
        whole = held.everywhere or instance in held.instances
        deeper = self._authoriser.reach(holder(call.caller), NEEDED)
        return Visible(
            namespaces=None if whole else held.namespaces.get(instance, frozenset()),
            reserved=deeper.everywhere or instance in deeper.instances,
        )
