"""Fills the index: follows every kind of every cluster.

    KindFollower       one kind of one cluster: its list and changes, applied to the store
    ClusterCollector   one cluster: which kinds there are, a follower for each, and a heartbeat
    Collector          all clusters, each in tasks of its own: a slow or dead one holds up no other

What is kept in memory are the pages and events on their way, never objects.
"""

from kairship.kpanda.collector.cluster import ClusterCollector, CollectorSettings
from kairship.kpanda.collector.collector import ClusterStores, Collector
from kairship.kpanda.collector.figures import Figures
from kairship.kpanda.collector.kind import KindFollower
from kairship.kpanda.collector.progress import Progress, Stage

__all__ = [
    "ClusterCollector",
    "ClusterStores",
    "Collector",
    "CollectorSettings",
    "Figures",
    "KindFollower",
    "Progress",
    "Stage",
]
