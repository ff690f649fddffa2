"""The network that an address counts for in limits."""

import pytest

from kairship.process.client_network import client_network


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_the_network_of_an_address(address: str, network: str) -> None:
    assert client_network(address) == network
