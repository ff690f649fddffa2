"""Nodes of clusters: read in the cluster and changed there."""

from kairship.kpanda.services.nodes.service import NodesService

__all__ = ["NodesService"]
