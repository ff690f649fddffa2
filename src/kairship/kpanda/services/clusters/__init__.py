"""The registry of clusters.

reading       list, get, watch, sum up
registering   verify, register and remove
changing      what people decide about a cluster, its labels, its credential
kubeconfig    kubeconfigs for people
view          clusters as callers see them; `filters` and `summary` work on these
"""

from kairship.kpanda.services.clusters.part import Settings, Tools
from kairship.kpanda.services.clusters.service import ClustersService

__all__ = ["ClustersService", "Settings", "Tools"]
