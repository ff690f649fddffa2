"""The controllers of the plane, and the process `kairship controller-manager` that runs them.

    process          elects one of the replicas and runs all controllers there
    lifecycle        creates, configures, upgrades, backs up, restores and deletes instances
    status_sync      observes instances and writes their conditions and state
    statistics       counts what every instance holds
    virtual_cluster  registers every instance as a hidden cluster of container management (kpanda)
    membership       joins clusters to instances and takes them out again
    registry         registers instances, namespaces and the permission catalogue with global management (ghippo)
    access           turns AccessBindings into RBAC inside the instances and their members

Controllers read the global cluster through `global_cluster` and the inside of instances through `instance_cache`, which
`target_tasks` runs. `rbac` is what the process may do in the global cluster.
"""
