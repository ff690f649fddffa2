"""The kinds of objects in an instance, and the tables that say which operation serves which method on them.

`apps`, `core` and `policies` have the operation tables of the proto services of those names. `deployments`, `events`
and `pods` have what is particular to a kind, `promotion` takes a workload of a member cluster over into the instance.
"""
