"""Divides the clusters among the replicas of container management.

Every replica holds a Lease of its own, and every replica watches the Leases of the others (`replicas`). A cluster
belongs to the replica that rendezvous hashing of its UID and the replicas' names chooses (`shard`): no replica has to
be asked, and when a replica comes or goes, only its own shard moves. One Lease per cluster would give the same result
with as many writes to the global cluster as there are clusters; here there are as many as there are replicas.

A replica whose Lease was not renewed in time stops by its own clock before the others take over. Clocks alone do not
guarantee that two replicas never write the same index: the database refuses a writer that was replaced.
"""

from kairship.kpanda.sharding.replicas import Replicas
from kairship.kpanda.sharding.shard import Shard, WholeShard
from kairship.kpanda.sharding.shard_changes import ShardChanges

__all__ = ["Replicas", "Shard", "ShardChanges", "WholeShard"]
