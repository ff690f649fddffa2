"""What wakes controllers besides the global cluster: instances and clusters that come and go, and what changes inside.

Where each kind of news goes is said in one place, because controllers do not know of each other.
"""

from kairship.controllers import access, lifecycle, membership, registry, statistics, status_sync, virtual_cluster
from kairship.controllers.global_cluster import GlobalCluster, instance_key
from kairship.controllers.inside import Insides, Source
from kairship.controllers.membership import membership_key
from kairship.controllers.statistics import Pictures
from kairship.instances.pool import Health, Pool, TargetKind
from kairship.reconcile import Manager
from kairship.resources import VIRTUAL_PREFIX


def wake(manager: Manager, cluster: GlobalCluster, *, pool: Pool, insides: Insides, pictures: Pictures) -> None:
    """From now on."""

    def reached(health: Health) -> None:
        if health.kind is TargetKind.INSTANCE:
            manager.add(status_sync.NAME, instance_key(health.name))
            manager.add(virtual_cluster.NAME, instance_key(health.name))
            members_of(health.name)
        elif health.name.startswith(VIRTUAL_PREFIX):
            manager.add(virtual_cluster.NAME, instance_key(health.name.removeprefix(VIRTUAL_PREFIX)))
        else:
            manager.add(membership.NAME, membership_key(health.name))
            if member := cluster.memberships.store.get(health.name):
                manager.add(access.NAME, instance_key(member.spec.instance))

    def changed(instance: str, source: Source, name: str) -> None:
        if source is Source.WHOLE:
            members_of(instance)
            # Estimators take from the members what could not be asked before.
            manager.add(lifecycle.NAME, instance_key(instance))
        if source in {Source.NAMESPACES, Source.WHOLE}:
            manager.add(registry.NAME, instance_key(instance))
        if source is Source.CLUSTERS:
            manager.add(membership.NAME, membership_key(name))
        manager.add(access.NAME, instance_key(instance))
        if source in {Source.KINDS, Source.WHOLE}:
            manager.add(virtual_cluster.NAME, instance_key(instance))

    def members_of(instance: str) -> None:
        for member in cluster.members_of(instance):
            manager.add(membership.NAME, membership_key(member.metadata.name))

    pool.subscribe(reached)
    insides.subscribe(changed)
    pictures.tell(lambda instance: manager.add(statistics.NAME, instance_key(instance)))
