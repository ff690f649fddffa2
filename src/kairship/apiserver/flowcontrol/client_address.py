"""The address that a request came from, when proxies stand in between.

Behind a load balancer every connection comes from the balancer, and a rate limit by address would be one limit for all
unauthenticated clients together. `X-Forwarded-For` is believed only if the operator trusts the proxy that wrote it:
read from the right, the first address that is not trusted is the client's. What stands to the left of it was written by
that client, and may be anything.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

HEADER = "X-Forwarded-For"

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedProxies(msgspec.Struct, frozen=True):
    trusted: tuple[Network, ...] = ()
    """The networks of load balancers and proxies in front of the entrance."""

    @classmethod
    def parse(cls, networks: Iterable[str]) -> "TrustedProxies":
        """Takes networks such as 10.0.0.0/8, or single addresses. Raises `ValueError` for any other text."""
        return cls(tuple(ipaddress.ip_network(text.strip()) for text in networks))

    def client_address(self, peer: str, forwarded: Sequence[str]) -> str:
        """`peer` is the other end of the connection, `forwarded` the `X-Forwarded-For` headers in their order."""
        if not self.trusted or not forwarded or not self._trusts(_address(peer)):
            return peer
        client = peer
        for hop in reversed([hop for header in forwarded for hop in header.split(",")]):
            address = _address(hop.strip())
            if address is None:
                break  # this is no address, so the proxy that wrote it is the last known one
            client = str(address)
            if not self._trusts(address):
                break
        return client

    def trusts(self, peer: str) -> bool:
        """Whether the other end of a connection is such a proxy, which many clients share."""
        return bool(self.trusted) and self._trusts(_address(peer))

    def _trusts(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self.trusted)


def _address(text: str) -> Address | None:
    """Reads an address with or without a port: some load balancers write it too."""
    for candidate in (text, text.rpartition(":")[0].strip("[]"), text.strip("[]")):
        try:
            found = ipaddress.ip_address(candidate)
        except ValueError:
            continue
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return mapped or found
    return None
