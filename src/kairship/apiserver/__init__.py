"""The entrance: the apiserver, which is the only way into the plane. It serves REST, gRPC and the native proxy.

One set of protos describes the API. A request takes this way through the package:

    http, grpc    the two servers: a request becomes a method and a message
    pipeline      the chain of checks around every method: authentication, fair queue, authorisation, audit
    services      the methods of the API, as plain objects; other services are served by backends (ghippo, kpanda)
    proxy         the Kubernetes API of instances and members, for kubectl and client-go, with the same checks

The checks themselves are here:

    auth          who the caller is, and whether the caller may
    flowcontrol   how much is served at a time: limits, fair queue, rate limits, streams
    audit         what is recorded of a call, on disk first and then in global management
    bindings      the webhook by which global management delivers bindings

The processes are at the top level. `process` is `kairship apiserver`: it opens the ports and keeps a `crew` of workers.
Each `worker` is a process with one event loop, which runs what `assembly` constructs; `entrance` holds its servers.
`settings` and `worker_spec` are what these processes are started with, `worker_metrics` merges their metrics, and
`rbac` is what they may do in the global cluster.
"""
