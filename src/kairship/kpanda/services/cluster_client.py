"""The pool's client of a cluster for a request, or the error that says why there is none."""

from kairship.instances.pool import NotConnected, Pool, Reason
from kairship.kube import Client
from kairship.rpc.errors import NotFound, Unavailable


def client_of(pool: Pool, cluster: str) -> Client:
    """The client for the next call only: get it anew for each call."""
    try:
        return pool.cluster(cluster)
    except NotConnected as refusal:
        if refusal.reason is Reason.UNKNOWN:
            raise NotFound(f"there is no cluster {cluster}") from None
        raise Unavailable(f"{refusal}; see the conditions of the cluster", retry_after=2.0) from None
