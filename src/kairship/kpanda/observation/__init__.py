"""Observes a cluster: what it is and has, asked of the cluster itself.

    client      the client for observing a cluster
    nodes       its nodes, counted and added up page by page, without keeping any node
    pods        what its pods request, in the same way
    usage       what its nodes use, if it serves metrics
    network     address ranges and the mode of kube-proxy, as far as the cluster tells them
    provider    which provider seems to run it

Every function takes a client and a timeout, and raises the errors of `kairship.kube`.
"""
