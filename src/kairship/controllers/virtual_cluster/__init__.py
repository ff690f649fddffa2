"""The virtual cluster sync controller: every instance is a hidden cluster of container management.

`identity` is the account inside the instance by which its objects are read, `credentials` the Secret that opens it,
`reconciler` puts them together with the Cluster object.
"""

from kairship.controllers.virtual_cluster.reconciler import NAME, instance_of_cluster, virtual_cluster_controller

__all__ = ["NAME", "instance_of_cluster", "virtual_cluster_controller"]
