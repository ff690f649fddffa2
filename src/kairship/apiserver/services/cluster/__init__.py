"""The Cluster service: the members of instances, and the clusters that could become members.

A wish to join is a `Membership`, which a controller brings about. What is shown of a member comes from three sides, put
together in `members`: Karmada's own Cluster, the Membership, and the Cluster of container management. All of it becomes
one message (`view`), on which lists are filtered and sorted (`filters`).
"""

from kairship.apiserver.services.cluster.service import ClusterService

__all__ = ["ClusterService"]
