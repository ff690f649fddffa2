"""Parts of the platform: which instances, and which namespaces of others."""

import msgspec


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
