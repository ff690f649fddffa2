"""What all parts of the Cluster service work with."""

from kairship.apiserver.services.cluster.joining import Registry
from kairship.apiserver.services.cluster.members import Member, Members
from kairship.apiserver.services.reach import Reach
from kairship.reconcile import Clock
from kairship.rpc.calls import Call
from kairship.rpc.errors import NotFound
from kairship.rpc.own_kinds import OwnKinds


class Part:
    def __init__(self, own: OwnKinds, reach: Reach, clock: Clock) -> None:
        self._own = own
        self._reach = reach
        self._clock = clock
        self._members = Members(own, reach)

    async def _member(self, instance: str, name: str, call: Call) -> Member:
        found = await self._members.one(instance, name, call)
        if found is None:
            raise NotFound(f"instance {instance} has no cluster {name}")
        return found

    async def _registry(self, call: Call) -> Registry:
        return Registry.of(await self._own.clusters.all(call), await self._own.memberships.all(call), call.sight.reach)
