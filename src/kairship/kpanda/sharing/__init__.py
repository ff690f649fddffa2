"""How the replicas of container management divide the clusters among themselves.

Every replica holds a Lease of its own, and all of them see who is there. A cluster belongs to the replica that comes
first in an order that its UID and the replicas' names decide (rendezvous hashing): nobody has to be asked, and when one
comes or goes, only its share moves. One Lease per cluster would say the same with as many writes to the global cluster
as there are clusters; here they are as many as there are replicas.

A replica whose Lease was not renewed in time stops by its own clock before the others take over. That two never write
the same index is not left to clocks: the database refuses whoever was replaced.
"""

from kairship.kpanda.sharing.replicas import Replicas
from kairship.kpanda.sharing.share import Share, Whole

__all__ = ["Replicas", "Share", "Whole"]
