"""The client for observing a cluster that is not trusted: few connections, allowed addresses, bounded replies."""

from kairship.kube import AddressRule, Client, Connection

_USER_AGENT = "kairship-kpanda"
_MOST_CALLS = 4
# Enough for a page of 500 nodes with the images of each.
_LARGEST_REPLY = 64 << 20


def observation_client(connection: Connection, addresses: AddressRule, *, timeout: float) -> Client:
    """Use it in `async with`."""
    return Client(
        connection,
        max_connections=_MOST_CALLS,
        timeout=timeout,
        user_agent=_USER_AGENT,
        addresses=addresses,
        largest_reply=_LARGEST_REPLY,
    )
