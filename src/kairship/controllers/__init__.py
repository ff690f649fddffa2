"""The controllers of the plane, and the process that runs them.

A controller is a module or package of its own: `lifecycle` brings instances into being and keeps them as their spec
asks, `status_sync` looks at them all the time and writes down what it finds. `process` elects one of the replicas and
runs them there. What they read of the global cluster is in `global_cluster`, what they may do there in `rbac`.
"""
