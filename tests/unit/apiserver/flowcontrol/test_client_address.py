"""The client address of a request: what a trusted proxy says of it, and no other."""

from typing import Any

import grpc
import pytest
from support.entrance import METHODS, Client, running

from kairship.apiserver.flowcontrol.client_address import TrustedProxies
from kairship.apiserver.flowcontrol.limits import Limits

PROXIES = TrustedProxies.parse(["10.0.0.0/8", "2001:db8::/32"])
LOGIN = METHODS["Sessions.Login"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.1.1.1", ["203.0.113.7"], "203.0.113.7"),
        ("10.1.1.1", ["198.51.100.1, 203.0.113.7"], "203.0.113.7"),  # any client may write what stands to the left
        ("10.1.1.1", ["198.51.100.1", "203.0.113.7, 10.2.2.2"], "203.0.113.7"),
        ("10.1.1.1", ["203.0.113.7:5311"], "203.0.113.7"),
        ("10.1.1.1", ["[2001:470::7]:5311"], "2001:470::7"),
        ("2001:db8::1", ["::ffff:203.0.113.7"], "203.0.113.7"),
        ("::ffff:10.1.1.1", ["203.0.113.7"], "203.0.113.7"),
        ("10.1.1.1", ["10.3.3.3, 10.2.2.2"], "10.3.3.3"),  # all of them are trusted: the client is inside
        ("10.1.1.1", ["203.0.113.7, nonsense"], "10.1.1.1"),
        ("10.1.1.1", ["nonsense, 10.2.2.2"], "10.2.2.2"),
        ("10.1.1.1", [""], "10.1.1.1"),
        ("10.1.1.1", [], "10.1.1.1"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # this proxy is not trusted
        ("", ["198.51.100.1"], ""),
    ],
)
def test_the_nearest_address_that_is_not_trusted(peer: str, forwarded: list[str], client: str) -> None:
    assert PROXIES.client_address(peer, forwarded) == client


def test_no_proxy_is_trusted_by_default() -> None:
    assert TrustedProxies().client_address("127.0.0.1", ["203.0.113.7"]) == "127.0.0.1"


async def rest(client: Client, address: str) -> bool:
    reply = await client.request("POST", LOGIN.routes[0].template, {}, headers={"X-Forwarded-For": address})
    return reply.status == 429


async def over_grpc(client: Client, address: str) -> bool:
    call: Any = client.channel.unary_unary(LOGIN.path)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(b"", metadata=(("x-forwarded-for", address),), timeout=20)
    return refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("ask", [rest, over_grpc])
@pytest.mark.parametrize("trusted", [True, False])
async def test_clients_behind_a_trusted_proxy_have_limits_of_their_own(ask: object, trusted: bool) -> None:
    assert callable(ask)
    limits = Limits(sign_ins_burst=2, sign_ins_per_second=0.001)
    async with running(limits=limits, trusted_proxies=TrustedProxies.parse(["127.0.0.1"] if trusted else [])) as server:
        client = server.client.named("")
        assert [await ask(client, "203.0.113.7") for _ in range(3)] == [False, False, True]
        assert await ask(client, "203.0.113.8") is not trusted
        assert await ask(client, "203.0.113.8, 203.0.113.7")  # a forged beginning gains nothing
