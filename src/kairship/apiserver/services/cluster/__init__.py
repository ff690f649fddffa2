"""The Cluster service: the members of instances, and the clusters that can become members.

A caller joins a cluster by creating a `Membership`, which a controller carries out. `joining` says who may join.
A member is put together from three sources (`members`) into one message (`view`), on which lists are filtered and
sorted (`filters`). The class in `service` is composed of `reads`, `writes` (with `taints`) and `watch`, over `base`.
"""

from kairship.apiserver.services.cluster.service import ClusterService

__all__ = ["ClusterService"]
