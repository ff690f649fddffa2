"""What an authoriser answers."""

import enum

import msgspec

from kairship.access.bindings import Binding
from kairship.access.roles import Role


class Verdict(enum.Enum):
    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    """The caller may know of the place, but not do this: 403."""
    HIDDEN = "hidden"
    """The caller has no right there at all, or there is no such place: 404 for both alike."""
    UNCERTAIN = "uncertain"
    """Bindings may be out of date, and this is not done on an old word: 503, come back soon."""

    def __bool__(self) -> bool:
        return self is Verdict.ALLOWED


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """Where a caller holds a permission: what a list is filtered by. What is not named here is not shown."""

    everywhere: bool = False
    instances: frozenset[str] = frozenset()
    """Names of instances that are held whole."""
    namespaces: dict[str, frozenset[str]] = {}
    """Of other instances, by their name, the namespaces that are held."""

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.instances) or bool(self.namespaces)

    def includes(self, instance: str, namespace: str | None = None) -> bool:
        """Without a namespace: whether anything of the instance is within reach."""
        if self.everywhere or instance in self.instances:
            return True
        held = self.namespaces.get(instance, frozenset())
        return bool(held) if namespace is None else namespace in held

    def covers(self, other: "Reach") -> bool:
        """Whether everything that is within the other is within this one."""
        if self.everywhere:
            return True
        return (
            not other.everywhere
            and other.instances <= self.instances
            and all(
                name in self.instances or held <= self.namespaces.get(name, frozenset())
                for name, held in other.namespaces.items()
            )
        )


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a verdict is what it is: what allows it, or what would."""

    verdict: Verdict
    permission: str
    bindings: tuple[Binding, ...] = ()
    """Which bindings allow it."""
    role: Role | None = None
    """The least built-in role that would; None if there is no such permission."""
    outside_token: bool = False
    """Whether it is the token that is not for this, and not a lack of rights."""
