"""The service of the protos, put together from its parts."""

from kairship.apiserver.services.cluster.changing import Changing
from kairship.apiserver.services.cluster.following import Following
from kairship.apiserver.services.cluster.reading import Reading


class ClusterService(Reading, Changing, Following):
    """kairship.v1alpha1.Cluster."""
