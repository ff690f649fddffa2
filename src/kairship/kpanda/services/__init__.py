"""The gRPC services of container management, which callers reach through the entrance.

clusters           the service `Clusters`: the registry
nodes              the service `Nodes`: nodes of clusters
collector_states   the service `Collector`: the state of the collector
visibility         which clusters a caller can see
cluster_client     the client of a cluster, for a request
"""
