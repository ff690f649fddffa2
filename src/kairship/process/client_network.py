"""The network that a client's address counts for, in every limit by address.

One client of IPv6 has a whole /64 to choose its address from, so an address alone would limit nobody.
"""

import ipaddress

_PREFIX = 64


def client_network(address: str) -> str:
    """The address itself for IPv4, the /64 for IPv6; a text that is no address counts for itself."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _PREFIX), strict=False))
