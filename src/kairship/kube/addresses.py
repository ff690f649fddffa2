"""Which network addresses a client connects to, where the address of the server came from somebody else.

A server that is named by whoever registers a cluster could be this machine itself, its neighbours on the link, or the
metadata service of the cloud that it runs in, which hands out credentials. The rule is asked for the address that a
socket is about to connect to, after the name was resolved: a name that first leads here and then there gains nothing.
"""

import errno
import ipaddress
import socket
from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# Those that are not link-local: of Alibaba Cloud, Oracle, Azure, and of AWS by IPv6.
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)
_TRANSLATED = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))


class RefusedAddressError(OSError):
    """A socket must not be connected. It says the same for every address, so that refusals of several are one."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "the address is this machine's, its link's or a metadata service's")


class AddressRule(msgspec.Struct, frozen=True):
    """Refuses loopback, link-local, metadata and other special addresses, but for those that the operator allows."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def allowing(cls, networks: Iterable[str]) -> "AddressRule":
        """Networks as 127.0.0.0/8, or single addresses. Raises `ValueError` for what is neither."""
        return cls(tuple(ipaddress.ip_network(text.strip()) for text in networks))

    def refuses(self, address: Address) -> bool:
        meant = _meant(address)
        if any(each in network for network in self.allowed for each in {address, meant}):
            return False
        return (
            meant in _METADATA
            or meant.is_loopback
            or meant.is_link_local
            or meant.is_multicast
            or meant.is_unspecified
            or meant.is_reserved
        )

    def open_socket(self, found: tuple[Any, ...]) -> socket.socket:
        """For an address as `getaddrinfo` returns it. Raises `RefusedAddressError` instead of opening one."""
        family, kind, protocol, _, place = found
        if self.refuses(ipaddress.ip_address(place[0])):
            raise RefusedAddressError
        return socket.socket(family, kind, protocol)


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    # A zone is part of an address, and of nothing that it is compared with.
    address = ipaddress.IPv6Address(int(address))
    if address.is_loopback or address.is_unspecified:
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and any(address in network for network in _TRANSLATED):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address
