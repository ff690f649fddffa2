"""What a request of a Kubernetes client means, and whether it is admitted.

    target          the instance or member cluster that a path or host name leads to, and the path there
    request_info    verb, resource and namespace, as Kubernetes' own authorisers see a request
    request_line    everything that follows from the first line of a request; parsed lines are cached
    field_selector  makes a request leave out namespaces
    headers         the headers that are forwarded, in either direction
    authorisation   what the plane's bindings say about a request, and the identity to impersonate inside
    filter          authentication and authorisation together; their result is an `AdmittedRequest`
    admitted        the admitted request that the rest of the proxy works with
    audit           the audit records of proxy requests
    flow_control    the fair queue for requests, and the bound on open streams

Nothing in here sends anything to an instance.
"""
