"""The service `Clusters`, composed of its mixins."""

from kairship.kpanda.services.clusters.cluster_registration import ClusterRegistration
from kairship.kpanda.services.clusters.kubeconfig import ClusterKubeconfigs
from kairship.kpanda.services.clusters.reads import ClusterReads
from kairship.kpanda.services.clusters.updates import ClusterUpdates


class ClustersService(ClusterReads, ClusterRegistration, ClusterUpdates, ClusterKubeconfigs):
    """Implements kairship.kpanda.v1alpha1.Clusters."""
