"""A member of an instance, as its three sides know it.

A cluster can be known to Karmada alone, when it joined without us; by its Membership alone, while it is joining; or to
container management too, whose labels and taints it then has.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kairship.apiserver.services.reach import Reach
from kairship.kube import Object, kinds
from kairship.rpc.calls import Call, patience
from kairship.rpc.own_kinds import OwnKinds, SeenCluster, SeenMembership


class Member(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    instance: str
    karmada: Object | None = None
    membership: SeenMembership | None = None
    registered: SeenCluster | None = None

    @property
    def is_ours(self) -> bool:
        """Whether container management has it, so that its labels and taints are decided there."""
        return self.membership is not None and self.registered is not None

    @property
    def exists(self) -> bool:
        return self.karmada is not None or self.membership is not None


def member(
    name: str,
    instance: str,
    *,
    karmada: Object | None,
    memberships: Mapping[str, SeenMembership],
    registered: SeenCluster | None,
) -> Member:
    found = memberships.get(name)
    return Member(name=name, instance=instance, karmada=karmada, membership=found, registered=registered)


class Members:
    def __init__(self, own: OwnKinds, reach: Reach) -> None:
        self._own = own
        self._reach = reach

    async def all(self, instance: str, call: Call) -> list[Member]:
        page = await self._reach.instance(instance).list(kinds.CLUSTERS, timeout=patience(call))
        karmada: dict[str, Object] = {cluster["metadata"]["name"]: cluster for cluster in page.items}
        memberships = await self.memberships(instance, call)
        registered = {cluster.metadata.name: cluster for cluster in await self._own.clusters.all(call)}
        return [
            member(
                name,
                instance,
                karmada=karmada.get(name),
                memberships=memberships,
                registered=registered.get(name),
            )
            for name in sorted(karmada.keys() | memberships.keys())
        ]

    async def one(self, instance: str, name: str, call: Call) -> Member | None:
        page: Any = await self._reach.instance(instance).list(
            kinds.CLUSTERS, field_selector=f"metadata.name={name}", timeout=patience(call)
        )
        found = member(
            name,
            instance,
            karmada=next(iter(page.items), None),
            memberships=await self.memberships(instance, call),
            registered=await self._own.clusters.get(name, call),
        )
        return found if found.exists else None

    async def memberships(self, instance: str, call: Call) -> dict[str, SeenMembership]:
        """Those of an instance, by the names of their clusters."""
        return {
            each.metadata.name: each for each in await self._own.memberships.all(call) if each.spec.instance == instance
        }
