"""The client does not connect to forbidden addresses, however they are written and whenever they are resolved."""

import asyncio
import ipaddress
import socket
from typing import Any

import pytest

from kairship.kube import AddressRefused, AddressRule, Client, Connection, TransportError


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.0.3",
        "0.0.0.0",  # noqa: S104
        "169.254.169.254",
        "169.254.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "fd00:ec2::254%eth0",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::",
    ],
)
def test_special_addresses_are_refused(address: str) -> None:
    assert AddressRule().refuses(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["10.0.0.1", "192.168.1.7", "172.16.3.4", "8.8.8.8", "fd12::1", "2a00:1450::1"])
def test_networks_of_clusters_are_not(address: str) -> None:
    assert not AddressRule().refuses(ipaddress.ip_address(address))


def test_the_operator_allows_networks() -> None:
    rule = AddressRule.allowing(["127.0.0.0/8", "::1"])
    assert not rule.refuses(ipaddress.ip_address("127.0.0.1"))
    assert not rule.refuses(ipaddress.ip_address("::ffff:127.0.0.1"))
    assert not rule.refuses(ipaddress.ip_address("::1"))
    assert rule.refuses(ipaddress.ip_address("169.254.169.254"))
    with pytest.raises(ValueError, match="does not appear"):
        AddressRule.allowing(["localhost"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
async def test_no_connection_is_opened(host: str) -> None:
    """However the address is written, the server there sees no connection."""
    seen: list[object] = []

    async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer)
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client(Connection(f"https://{host}:{port}", token="t"), addresses=AddressRule()) as client:
        with pytest.raises(TransportError) as refused:
            await client.version(timeout=5)
    assert not seen
    if host in {"127.0.0.1", "localhost", "[::1]"}:
        assert isinstance(refused.value, AddressRefused)
        assert "the operator can allow it" in str(refused.value)


async def test_a_name_that_leads_elsewhere_the_second_time_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the first answer is harmless, the second is this machine."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    answers = ["192.0.2.1", "127.0.0.1"]
    asked = 0

    async def resolve(_: object, host: str, port: int, **__: Any) -> list[Any]:
        nonlocal asked
        answer = answers[min(asked, 1)]
        asked += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answer, port))]

    monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", resolve)
    connection = Connection(f"https://cluster.example:{port}", token="t")
    for refusal in (Exception, AddressRefused):
        async with server, Client(connection, addresses=AddressRule()) as client:
            with pytest.raises(refusal):
                await client.version(timeout=2)
    assert asked == 2
