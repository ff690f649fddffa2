"""Reads that the index answers instead of the instance.

    reads         get, list and the beginning of a watch, where bindings and RBAC inside are certain to agree
    kind_lookup   the kind that a path names, as the index knows it
    read_source   the cluster, kind and namespace that one read is about
    columns       the columns of tables, for `kubectl get`
    own_writes    records writes through the proxy, so that their caller reads them

A read that the index cannot answer raises `PassThrough`; the proxy then forwards it.
"""
