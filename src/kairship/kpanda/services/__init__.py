"""The services of container management, called through the entrance: one package or module per service.

clusters     the registry
nodes        nodes of clusters
collection   the state of the collector
visibility   which clusters a caller can see
"""
