"""Probes against real sockets: what they accept, and the reasons that they report."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kairship.supervisor import HttpProbe, TcpProbe, probe

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]


def answering(reply: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    return serve


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def self_signed(directory: Path, name: str) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / f"{name}.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


async def check(what: HttpProbe | TcpProbe) -> str | None:
    async with probe.checking(what) as ask:
        return await ask()


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", None),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered 404"),
        (b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", "answered 302"),
        (
            b"HTTP/1.1 500 Oh\r\nContent-Length: 25\r\n\r\n[+]a ok\n[-]etcd failed: x\n",
            "answered 500: [-]etcd failed: x",
        ),
        (b"garbage\r\n\r\n", "400"),
        (b"", "Server disconnected"),
    ],
)
async def test_http(reply: bytes, verdict: str | None) -> None:
    async with listening(answering(reply)) as port:
        said = await check(HttpProbe(url=f"http://127.0.0.1:{port}/readyz"))
    assert (said is None) == (verdict is None)
    assert (verdict or "") in (said or "")


async def test_http_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "TIMEOUT", 0.1)
    released = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    async with listening(silent) as port:
        said = await check(HttpProbe(url=f"http://127.0.0.1:{port}/readyz"))
        released.set()
    assert said == f"http://127.0.0.1:{port}/readyz did not answer within 0.1 s"


async def test_tcp() -> None:
    async with listening(hang_up) as port:
        assert await check(TcpProbe(port=port)) is None
    assert await check(TcpProbe(port=port)) == f"127.0.0.1:{port}: connection refused"
    assert await check(HttpProbe(url=f"http://127.0.0.1:{port}/")) == f"http://127.0.0.1:{port}/: connection refused"


async def test_https_trusts_the_given_authority_only(tmp_path: Path) -> None:
    own, other = self_signed(tmp_path, "own"), self_signed(tmp_path, "other")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own)
    async with listening(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), tls=tls) as port:
        url = f"https://127.0.0.1:{port}/readyz"
        assert await check(HttpProbe(url=url, ca_file=str(own))) is None
        for ca_file in (str(other), None):
            assert "certificate verify failed" in (await check(HttpProbe(url=url, ca_file=ca_file)) or "")
        missing = str(tmp_path / "missing.pem")
        assert f"cannot use the CA file {missing}" in (await check(HttpProbe(url=url, ca_file=missing)) or "")
