"""Where a request comes from when others stand in between.

Behind a load balancer every request comes from the balancer, and a limit by address would be one for all strangers
together. What a balancer writes into `X-Forwarded-For` counts if the operator trusts it, and nothing else does: read
from the right, the first address that is not trusted is where the request came from. What stands to the left of it was
written there, and may be anything.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

HEADER = "X-Forwarded-For"

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Origins(msgspec.Struct, frozen=True):
    trusted: tuple[Network, ...] = ()
    """Of balancers and proxies in front of us."""

    @classmethod
    def trusting(cls, networks: Iterable[str]) -> "Origins":
        """Networks as 10.0.0.0/8, or single addresses. Raises `ValueError` for what is neither."""
        return cls(tuple(ipaddress.ip_network(text.strip()) for text in networks))

    def of(self, peer: str, forwarded: Sequence[str]) -> str:
        """`peer` is whom the connection is with, `forwarded` the headers of that name in their order."""
        if not self.trusted or not forwarded or not self._trusts(_address(peer)):
            return peer
        origin = peer
        for hop in reversed([hop for header in forwarded for hop in header.split(",")]):
            address = _address(hop.strip())
            if address is None:
                break  # no address: who wrote it is the last of whom anything is known
            origin = str(address)
            if not self._trusts(address):
                break
        return origin

    def _trusts(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self.trusted)


def _address(text: str) -> Address | None:
    """Some balancers write the port too."""
    for candidate in (text, text.rpartition(":")[0].strip("[]"), text.strip("[]")):
        try:
            found = ipaddress.ip_address(candidate)
        except ValueError:
            continue
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return mapped or found
    return None
