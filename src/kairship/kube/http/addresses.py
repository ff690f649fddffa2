"""The addresses to which a client may connect, if users choose the address of the server (SSRF protection).

The server of a cluster that a user registers could be this machine itself, a neighbour on its link, or the metadata
service of its cloud, which hands out credentials. The rule is applied to the address to which a socket is about to
connect, after the name was resolved: so DNS rebinding gains nothing.
"""

import errno
import ipaddress
import socket
from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# The metadata services whose address is not link-local: of Alibaba Cloud, Oracle, Azure, and of AWS by IPv6.
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)
_TRANSLATED = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))


class RefusedAddressError(OSError):
    """The rule forbids an address. The text is the same for all addresses, so that several are reported as one."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "the address is this machine's, its link's or a metadata service's")


class AddressRule(msgspec.Struct, frozen=True):
    """Refuses loopback, link-local, metadata and other special addresses, except those that the operator allows."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def allowing(cls, networks: Iterable[str]) -> "AddressRule":
        """Allows networks such as 127.0.0.0/8, or single addresses. Raises `ValueError` for any other text."""
        return cls(tuple(ipaddress.ip_network(text.strip()) for text in networks))

    def refuses(self, address: Address) -> bool:
        effective = _effective(address)
        if any(each in network for network in self.allowed for each in {address, effective}):
            return False
        return (
            effective in _METADATA
            or effective.is_loopback
            or effective.is_link_local
            or effective.is_multicast
            or effective.is_unspecified
            or effective.is_reserved
        )

    def open_socket(self, found: tuple[Any, ...]) -> socket.socket:
        """Opens a socket for an entry of `getaddrinfo`. Raises `RefusedAddressError` for a forbidden address."""
        family, kind, protocol, _, address = found
        if self.refuses(ipaddress.ip_address(address[0])):
            raise RefusedAddressError
        return socket.socket(family, kind, protocol)


def _effective(address: Address) -> Address:
    """Returns the IPv4 address that is embedded in an IPv6 address, if there is one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    # Without the zone, which the networks and addresses to compare with do not have.
    address = ipaddress.IPv6Address(int(address))
    if address.is_loopback or address.is_unspecified:
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and any(address in network for network in _TRANSLATED):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address
