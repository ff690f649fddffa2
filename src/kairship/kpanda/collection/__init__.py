"""Which clusters are collected here, with which credential, and how that goes.

controller   begins, renews and ends the collection of clusters, and removes what is left of those that are gone
access       the credential of a collection: a new token is used at once, without beginning anew
measuring    how much the index holds of each cluster and kind
metrics      all of it for Prometheus
"""

from kairship.kpanda.collection.controller import NAME, Collection, collection_controller
from kairship.kpanda.collection.measuring import Measuring
from kairship.kpanda.collection.metrics import CollectionMetrics

__all__ = ["NAME", "Collection", "CollectionMetrics", "Measuring", "collection_controller"]
