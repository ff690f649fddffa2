"""Nodes of clusters: read in the index, changed in the cluster."""

from kairship.kpanda.services.nodes.reading import NodeReader
from kairship.kpanda.services.nodes.service import NodesService

__all__ = ["NodeReader", "NodesService"]
