"""The cluster status controller: the conditions, the phase and the figures of every cluster.

probe         asks the cluster
findings      derives conditions and the phase from that (pure functions)
composer      composes the status, without any request
reconciler    the controller: when to probe, and when to write
"""

from kairship.kpanda.status.reconciler import NAME, StatusSettings, cluster_status_controller

__all__ = ["NAME", "StatusSettings", "cluster_status_controller"]
