"""The client for questions to a cluster that may be anybody's: few connections, allowed addresses, replies that end."""

from kairship.kube import AddressRule, Client, Connection

_USER_AGENT = "kairship-kpanda"
_MOST_CALLS = 4
# A page of 500 nodes, with the images that each has.
_LARGEST_REPLY = 64 << 20


def asking(connection: Connection, addresses: AddressRule, *, timeout: float) -> Client:
    """To be used in `async with`."""
    return Client(
        connection,
        max_connections=_MOST_CALLS,
        timeout=timeout,
        user_agent=_USER_AGENT,
        addresses=addresses,
        largest_reply=_LARGEST_REPLY,
    )
