"""The provider of a cluster, from Karmada's word to the enum of the published API."""

from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterProvider


def provider_of(name: str) -> ClusterProvider:
    """Karmada takes any word as a provider; the published API has a list, and GENERIC for every other word."""
    return ClusterProvider.__members__.get(name, ClusterProvider.GENERIC)
