"""The native proxy: the Kubernetes API of an instance, and of its members, for kubectl, helm and client-go.

    target       which instance and member a path leads to, and the path there
    asking       a request as Kubernetes' own authorisers see it
    headers      what is passed on, and what comes back
    rights       who may come in, and who they are inside
    door         all of these together: what is let in is `passing`
    auditing     what is remembered of it
    turns        whose turn it is, and which streams are open
    indexed      reads that the index answers; `known_kinds` says what a path is about
    forwarding   the rest, passed on to the instance
    noting       writes are noted, so that their writer reads them
    sending      replies on their way back
    silence      places that do not answer
    statuses     errors in the words of Kubernetes
    terminals    exec, attach and port-forward: bytes both ways through a `tunnel`
    proxy        all of it, one request at a time

Reads are answered from the index where bindings grant them. Whatever is passed on is done in the person's name: the
instance's own RBAC has the last word, and its audit knows who it was. Nothing of what the person showed us, neither
token nor cookie, ever leaves.
"""
