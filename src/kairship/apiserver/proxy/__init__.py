"""The native proxy: the Kubernetes API of an instance and of its member clusters, for kubectl, helm and client-go.

    request      what a request means, and whether it is admitted
    index        reads that the index answers instead of the instance
    upstream     requests that are forwarded to the instance, in the caller's name
    reply        replies to the client
    handler      one request from its first byte to its last: it connects all of these
    access_log   the log line of each request, with its `metrics`

Reads are answered from the index where bindings grant them. Every other request is forwarded in the caller's name, so
the instance's own RBAC has the last word and its audit log names the user. The caller's credential, be it a token or a
cookie, never leaves the entrance.
"""
