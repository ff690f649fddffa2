"""The service `Nodes`: nodes of clusters, read from the index and changed in the cluster.

`service` implements the service, `reader` reads nodes, `view` makes messages of them.
"""

from kairship.kpanda.services.nodes.reader import NodeReader
from kairship.kpanda.services.nodes.service import NodesService

__all__ = ["NodeReader", "NodesService"]
