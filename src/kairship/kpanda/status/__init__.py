"""The cluster status controller: how every cluster is doing, as conditions, figures and in one word.

`look` asks the cluster, `findings` says what that means (pure functions), `reconciler` puts them together.
"""

from kairship.kpanda.status.reconciler import NAME, Settings, cluster_status_controller

__all__ = ["NAME", "Settings", "cluster_status_controller"]
