"""TLS: which servers the client trusts, and to which it presents its certificate."""

import asyncio
import ssl

import pytest
from cryptography.hazmat.primitives import serialization
from support.certificates import Authority, Issued
from support.scripted_server import reply, scripted_server

from kairship.kube import CertificateExpired, Client, ConfigError, Connection, TlsError, kinds

CA = Authority()
OTHER_CA = Authority("other-ca")


async def get(connection: Connection) -> object:
    async with Client(connection, timeout=5) as client:
        return await client.get(kinds.NAMESPACES, "a")


async def test_a_server_of_our_ca_is_trusted() -> None:
    async with scripted_server(reply({}), tls=CA.issue().server_context()) as server:
        assert await get(Connection(server=server.url, ca=CA.certificate)) == {}


async def test_a_server_of_another_ca_is_not() -> None:
    async with scripted_server(reply({}), tls=OTHER_CA.issue().server_context()) as server:
        for ca in (CA.certificate, None):
            with pytest.raises(TlsError, match="not trusted") as caught:
                await get(Connection(server=server.url, ca=ca))
            assert server.url in str(caught.value)
            assert not caught.value.retryable
        assert await get(Connection(server=server.url, insecure_skip_tls_verify=True)) == {}
        assert len(server.requests) == 1


async def test_an_expired_certificate_has_an_error_of_its_own() -> None:
    async with scripted_server(reply({}), tls=CA.issue(expired=True).server_context()) as server:
        with pytest.raises(CertificateExpired, match="renew it on the server"):
            await get(Connection(server=server.url, ca=CA.certificate))
        assert server.requests == []


async def test_the_name_in_the_certificate_counts_and_can_be_chosen() -> None:
    tls = CA.issue("inner.test", for_address=False).server_context()
    async with scripted_server(reply({}), tls=tls) as server:
        with pytest.raises(TlsError, match="TLS server name"):
            await get(Connection(server=server.url, ca=CA.certificate))
        assert await get(Connection(server=server.url, ca=CA.certificate, tls_server_name="inner.test")) == {}


async def test_a_server_without_tls() -> None:
    async def answer_plainly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer_plainly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TlsError, match="is this the port of an API server"):
            await get(Connection(server=f"https://127.0.0.1:{port}", ca=CA.certificate))


async def test_a_client_certificate_is_shown() -> None:
    me = CA.issue("me")
    async with scripted_server(reply({}), tls=CA.issue().server_context(client_ca=CA.certificate)) as server:
        connection = Connection(server=server.url, ca=CA.certificate, client_cert=me.certificate, client_key=me.key)
        assert await get(connection) == {}


async def test_a_client_certificate_that_the_server_refuses() -> None:
    """Speaks TLS by hand, because asyncio's server drops the alert with the reason."""
    context = CA.issue().server_context(client_ca=CA.certificate)

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        refused = False
        while not refused:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                refused = True
            writer.write(outgoing.read())
            incoming.write(await reader.read(65536))
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        stranger = OTHER_CA.issue("me")
        for connection in (
            Connection(server=address, ca=CA.certificate, client_cert=stranger.certificate, client_key=stranger.key),
            Connection(server=address, ca=CA.certificate),
        ):
            with pytest.raises(TlsError, match="check the client certificate"):
                await get(connection)


def _encrypted(issued: Issued) -> bytes:
    key = serialization.load_pem_private_key(issued.key, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )


async def test_material_that_cannot_be_used_is_refused_before_any_connection() -> None:
    me, other = CA.issue("me"), CA.issue("other")
    for connection in (
        Connection(server="https://here", ca=b"no certificate"),
        Connection(server="https://here", ca=b"\xff\xfe"),
        Connection(server="https://here", client_cert=me.certificate, client_key=other.key),
        Connection(server="https://here", client_cert=me.certificate, client_key=_encrypted(me)),
        Connection(server="https://here", client_cert=b"x", client_key=b"y"),
    ):
        with pytest.raises(ConfigError, match="https://here"):
            Client(connection)
