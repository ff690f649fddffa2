"""The service `Clusters`, put together of its parts."""

from kairship.kpanda.services.clusters.changing import Changing
from kairship.kpanda.services.clusters.kubeconfig import Kubeconfigs
from kairship.kpanda.services.clusters.reading import Reading
from kairship.kpanda.services.clusters.registering import Registering


class ClustersService(Reading, Registering, Changing, Kubeconfigs):
    """Implements kairship.kpanda.v1alpha1.Clusters."""
