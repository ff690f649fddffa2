"""Watches of one cluster's kind: begun from the index, continued by the cluster itself.

client-go starts an informer with a watch that sends what exists first (WatchList). Its beginning comes from the
index, in one snapshot with its revision P; then the cluster's own watch from P goes on, line by line. Nothing is
between the two: P is a revision of that cluster, and it was opened before the first row was sent. Whatever the index
cannot answer for passes through to the cluster unchanged. The rules, each paid for by a client that hung, looped or
believed stale rows:

- The cluster's watch is opened first and its first line looked at. If it says that P is too old, the request passes
  through, and nothing is spliced for this kind until P has grown.
- Every answer to "whatever you have" that cannot be given is 429 with Retry-After: 410 and 504 make clients loop hot.
- A new epoch of the kind ends every open stream with 410, at the end of a line; so does a revision from before it.
- A plain watch from a revision that the cluster has not reached would be silent for ever: it is told 410.
"""

from kairship.index.splice.request import WatchRequest
from kairship.index.splice.splicer import Splicer, WatchReply

__all__ = ["Splicer", "WatchReply", "WatchRequest"]
