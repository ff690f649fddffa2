"""Spliced watches of one kind of one cluster: they begin in the index and are continued by the cluster itself.

client-go starts an informer with a watch that sends the existing objects first (WatchList). The index sends these, from
one snapshot at its revision P; then the cluster's own watch from P continues, line by line. No event is missed between
the two: P is a revision of that cluster, and the cluster's watch was opened before the first row was sent. Whatever the
index cannot answer passes through to the cluster unchanged. Each of these rules was paid for by a client that hung,
looped or believed stale rows:

- The cluster's watch is opened first and its first line is examined. If it says that P is too old, the request passes
  through, and nothing is spliced for this kind until P has grown.
- A request for any revision (resourceVersion 0 or none) that cannot be answered gets 429 with Retry-After, because 410
  and 504 make clients loop hot.
- A new epoch of the kind ends every open stream with 410, at the end of a line. A watch from a revision before the
  epoch gets 410 as well.
- A plain watch from a revision that the cluster has not reached would be silent for ever, so it gets 410.

    request      `WatchRequest`, the watch as a client asks for it
    splicer      `Splicer`, which splices a watch, refuses it or passes it through
    upstream     the cluster's own watch, in whole lines
    epochs       tells open streams that their kind has begun a new epoch
"""

from kairship.index.splice.request import WatchRequest
from kairship.index.splice.splicer import Splicer, WatchReply

__all__ = ["Splicer", "WatchReply", "WatchRequest"]
