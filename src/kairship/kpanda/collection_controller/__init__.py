"""Decides which clusters the collector of this process follows, with which credential, and reports how it gets on.

The engine that follows them is `kairship.kpanda.collector`, and callers see its state through
`kairship.kpanda.services.collector_states`.

    reconciler       begins, renews and ends the collection of clusters, and removes what is stored of removed clusters
    connection       the credential of a collection: a new token is used at once, without a new connection
    index_sizes      how much the index holds of each cluster and kind
    stage_monitor    notices that the collection of a cluster has reached another stage
    metrics          the state of the collection for Prometheus
"""

from kairship.kpanda.collection_controller.index_sizes import IndexSizes
from kairship.kpanda.collection_controller.metrics import CollectionMetrics
from kairship.kpanda.collection_controller.reconciler import NAME, CollectionReconciler, collection_controller

__all__ = ["NAME", "CollectionMetrics", "CollectionReconciler", "IndexSizes", "collection_controller"]
