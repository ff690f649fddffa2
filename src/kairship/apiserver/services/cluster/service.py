"""The Cluster service, composed of its parts."""

from kairship.apiserver.services.cluster.reads import ClusterReads
from kairship.apiserver.services.cluster.watch import ClusterWatch
from kairship.apiserver.services.cluster.writes import ClusterWrites


class ClusterService(ClusterReads, ClusterWrites, ClusterWatch):
    """kairship.v1alpha1.Cluster."""
