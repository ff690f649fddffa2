"""The namespaces of instances in which Karmada keeps the Works of members, by the memberships in memory."""

from kairship.instances.membership import execution_namespace
from kairship.reconcile import Change
from kairship.rpc.errors import Unavailable
from kairship.rpc.resource_cache import ResourceCaches, SeenMembership


class ExecutionNamespaces:
    def __init__(self, caches: ResourceCaches) -> None:
        self._memberships = caches.memberships.reflector
        self._by_instance: dict[str, tuple[str, ...]] = {}
        self._memberships.subscribe(self._on_change)

    def of(self, instance: str) -> tuple[str, ...]:
        """In the order of their names. Raises `Unavailable` before the memberships are known."""
        if not self._memberships.synced:
            raise Unavailable("the clusters of the instance are not known yet; try again", retry_after=1.0)
        return self._by_instance.get(instance, ())

    def _on_change(self, change: Change[SeenMembership]) -> None:
        for seen, is_member in ((change.old, False), (change.new, True)):
            if seen is not None:
                instance, namespace = seen.spec.instance, execution_namespace(seen.metadata.name)
                others = set(self._by_instance.get(instance, ())) - {namespace}
                self._by_instance[instance] = tuple(sorted(others | {namespace} if is_member else others))
