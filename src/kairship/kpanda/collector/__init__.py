"""The collector, which fills the index: it follows every kind of every cluster with a list and a watch.

It does not decide which clusters it follows: `kairship.kpanda.collection_controller` does.

    kind_follower    `KindFollower`: one kind of one cluster, its list and changes, applied to the store
    kind_counters    `KindCounters`: how well one kind is being followed, in numbers
    cluster_quota    `ClusterQuota`: the bounds of what the index keeps of one cluster
    cluster_collector `ClusterCollector`: one cluster, which kinds it has, a follower for each, and a heartbeat
    collector        `Collector`: all clusters, each in tasks of its own, so that a slow or dead one holds up no other
    progress         `Progress`: how far the collector has come with a cluster

Memory holds the pages and events on their way to the store, and no other objects.
"""

from kairship.kpanda.collector.cluster_collector import ClusterCollector, CollectorSettings
from kairship.kpanda.collector.collector import ClusterStores, Collector
from kairship.kpanda.collector.kind_counters import KindCounters
from kairship.kpanda.collector.kind_follower import KindFollower
from kairship.kpanda.collector.progress import Progress, Stage

__all__ = [
    "ClusterCollector",
    "ClusterStores",
    "Collector",
    "CollectorSettings",
    "KindCounters",
    "KindFollower",
    "Progress",
    "Stage",
]
