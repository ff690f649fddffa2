"""What wakes controllers besides the global cluster: instances and clusters that come and go, and what changes inside.

Where each kind of news goes is said in one place, because controllers do not know of each other.
"""

from kairship.controllers import status_sync, virtual_cluster
from kairship.controllers.global_cluster import instance_key
from kairship.controllers.inside import Insides, Source
from kairship.instances.pool import Health, Pool, TargetKind
from kairship.reconcile import Manager
from kairship.resources import VIRTUAL_PREFIX


def wake(manager: Manager, *, pool: Pool, insides: Insides) -> None:
    """From now on."""

    def reached(health: Health) -> None:
        if health.kind is TargetKind.INSTANCE:
            manager.add(status_sync.NAME, instance_key(health.name))
            manager.add(virtual_cluster.NAME, instance_key(health.name))
        elif health.name.startswith(VIRTUAL_PREFIX):
            manager.add(virtual_cluster.NAME, instance_key(health.name.removeprefix(VIRTUAL_PREFIX)))

    def changed(instance: str, source: Source) -> None:
        if source in {Source.KINDS, Source.WHOLE}:
            manager.add(virtual_cluster.NAME, instance_key(instance))

    pool.subscribe(reached)
    insides.subscribe(changed)
