"""The machinery of our services, which the entrance and the backends behind it (ghippo, kpanda) share.

A service is a plain object with a coroutine per method of the protos; it is the same in the entrance and in a backend.

    calls, sight            one call: its caller, what the caller may see, and how much time is left
    errors                  the errors that callers get; `grpc_status` and `admission_errors` translate to and from them
    service_registry        which service object or backend answers a method
    backend_server          the gRPC server of a backend; `service_tokens` decides which of our processes may call it
    backend_channel         the client side of it; `caller_metadata` and `reply_metadata` travel beside the messages
    resource_cache          our custom resources in memory, never older than what this process has written
    listing, selectors, views, pending
                            sorting and paging, selectors, common messages, and work queues of streaming methods
    native_access           the addresses of the Kubernetes APIs behind the entrance
    defects                 how a defect of ours is logged
"""
