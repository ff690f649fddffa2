"""The virtual cluster sync controller: registers every instance as a hidden cluster of container management.

`collector_account` is the account inside the instance by which the collector reads it, `credentials` the Secret with a
token of that account, and `reconciler` keeps both and the Cluster object in step with the instance.
"""

from kairship.controllers.virtual_cluster.reconciler import virtual_cluster_controller

__all__ = ["virtual_cluster_controller"]
