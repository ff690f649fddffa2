"""What a cluster is and has, asked of the cluster itself.

    asking      the client for all of it
    identity    which cluster it is, under any name and address
    nodes       its nodes, counted and added up page by page: nothing of a node is kept
    pods        what its pods request, likewise
    network     address ranges and how Services are reached, as far as a cluster tells
    provider    who seems to run it

Everything takes a client and a timeout, and raises the errors of `kairship.kube`.
"""
