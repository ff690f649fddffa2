"""Container management, the process `kairship kpanda`: the registry of clusters, and the collector that fills the
index.

    process, assembly, settings, rbac
                            the process and its lifecycle, its wiring, how it is configured, what it may do
    global_cluster          the caches of the global cluster that services and controllers share
    services                the gRPC services: clusters, nodes, the state of the collector
    verification            checks a credential and its cluster before anything is kept
    credentials             the Secrets with clusters' credentials, their renewal, and the janitor
    observation             what a cluster is and has, asked of the cluster itself
    status                  the cluster status controller: conditions, phase and figures of every cluster
    collector               the engine that follows every kind of every cluster into the index
    collection_controller   decides which clusters the collector follows here, and reports how it gets on
    index_stores            the databases of the index, for writing and reading
    history                 records measurements of clusters and instances over time
    sharding                divides the clusters among the replicas
"""
