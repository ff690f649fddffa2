"""The part of the platform that a permission covers: instances, namespaces of other instances, and clusters."""

import msgspec


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Where a caller holds a permission. Lists are filtered by it: they contain only objects that it covers."""

    everywhere: bool = False
    instances: frozenset[str] = frozenset()
    """The names of instances that are covered completely."""
    namespaces: dict[str, frozenset[str]] = {}
    """The covered namespaces of other instances, by the name of the instance."""
    clusters: frozenset[str] = frozenset()
    """The UIDs of clusters of container management that are covered by themselves, whatever instance has them."""

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.instances) or bool(self.namespaces) or bool(self.clusters)

    def includes_cluster(self, uid: str, instance: str) -> bool:
        """Whether a cluster is covered: by itself, or because `instance`, which has it, is covered completely."""
        return self.everywhere or uid in self.clusters or (bool(instance) and instance in self.instances)

    def includes(self, instance: str, namespace: str | None = None) -> bool:
        """Whether the namespace is covered; without a namespace, whether any part of the instance is."""
        if self.everywhere or instance in self.instances:
            return True
        held = self.namespaces.get(instance, frozenset())
        return bool(held) if namespace is None else namespace in held

    def covers(self, other: "Coverage") -> bool:
        """Whether this coverage includes everything that `other` includes."""
        if self.everywhere:
            return True
        return (
            not other.everywhere
            and other.instances <= self.instances
            and other.clusters <= self.clusters
            and all(
                name in self.instances or held <= self.namespaces.get(name, frozenset())
                for name, held in other.namespaces.items()
            )
        )
