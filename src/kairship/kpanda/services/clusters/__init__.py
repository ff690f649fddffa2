"""The service `Clusters`: the registry of clusters.

service        the service, composed of the mixins `reads`, `cluster_registration`, `updates` and `kubeconfig`
base           the base of the mixins, and their dependencies
reads          list, get, watch and summarise clusters
cluster_registration  verify, register and remove clusters
updates        change the spec of a cluster, its labels, its credential
kubeconfig     kubeconfigs for users
view           makes messages of clusters; `filters` and `summary` work on these
spec_fields    makes fields of the custom resource of a request
"""

from kairship.kpanda.services.clusters.base import Dependencies, Limits
from kairship.kpanda.services.clusters.service import ClustersService

__all__ = ["ClustersService", "Dependencies", "Limits"]
