"""A member of an instance, put together from three sources.

The sources are the Cluster object of Karmada, the Membership, and the Cluster of container management. A member has
only the first if it joined without Kairship, and no first while it is joining. With the last two, its labels and taints
are those of container management.
"""

from typing import Any

import msgspec

from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.kube import Object, kinds
from kairship.rpc.calls import Call, patience
from kairship.rpc.resource_cache import ResourceCaches, SeenCluster, SeenMembership


class Member(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    instance: str
    karmada: Object | None = None
    membership: SeenMembership | None = None
    registered: SeenCluster | None = None

    @property
    def is_managed(self) -> bool:
        """Whether it joined through Kairship, so that container management decides its labels and taints."""
        return self.membership is not None and self.registered is not None

    @property
    def exists(self) -> bool:
        return self.karmada is not None or self.membership is not None


class Members:
    def __init__(self, caches: ResourceCaches, clients: InstanceClients) -> None:
        self._caches = caches
        self._clients = clients

    async def all(self, instance: str, call: Call) -> list[Member]:
        page = await self._clients.instance(instance).list(kinds.CLUSTERS, timeout=patience(call))
        karmada: dict[str, Object] = {cluster["metadata"]["name"]: cluster for cluster in page.items}
        memberships = await self._memberships(instance, call)
        registered = {cluster.metadata.name: cluster for cluster in await self._caches.clusters.all(call)}
        return [
            Member(
                name=name,
                instance=instance,
                karmada=karmada.get(name),
                membership=memberships.get(name),
                registered=registered.get(name),
            )
            for name in sorted(karmada.keys() | memberships.keys())
        ]

    async def get(self, instance: str, name: str, call: Call) -> Member | None:
        page: Any = await self._clients.instance(instance).list(
            kinds.CLUSTERS, field_selector=f"metadata.name={name}", timeout=patience(call)
        )
        found = Member(
            name=name,
            instance=instance,
            karmada=next(iter(page.items), None),
            membership=(await self._memberships(instance, call)).get(name),
            registered=await self._caches.clusters.get(name, call),
        )
        return found if found.exists else None

    async def _memberships(self, instance: str, call: Call) -> dict[str, SeenMembership]:
        """Returns the memberships of an instance by the names of their clusters."""
        return {
            each.metadata.name: each
            for each in await self._caches.memberships.all(call)
            if each.spec.instance == instance
        }
