"""The certificate of the server, renewed while it runs.

Both files are looked at every few seconds, and at once when asked (SIGHUP). A pair that does not fit together, or is
only half written, is not taken: the last good one stays. Connections that exist keep theirs.
"""

import asyncio
import os
import ssl
from contextlib import suppress
from pathlib import Path

import grpc
import msgspec
import structlog

from kairship.process.starting import StartError

LOOK_AGAIN = 5.0
_ASKED_FOR = "name_asked_for"

log = structlog.get_logger(__name__)


class CertificateFiles(msgspec.Struct, frozen=True):
    certificate: Path
    """In PEM, followed by those of the authorities in between."""
    key: Path


class CertificateError(StartError):
    """The certificate or its key cannot be used."""


class _Pair(msgspec.Struct, frozen=True):
    version: tuple[tuple[int, int, int], ...]
    context: ssl.SSLContext
    for_grpc: grpc.ServerCertificateConfiguration


class ServerCertificate:
    """Raises `CertificateError` when it is made of files that cannot be used."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._pair = _load(files)
        self._asked = asyncio.Event()
        # Never used itself: each handshake is given the context of the pair that is good at that moment.
        self.context = _context()
        self.context.sni_callback = self._choose

    def grpc_credentials(self) -> grpc.ServerCredentials:
        given = self._pair

        def renewed() -> grpc.ServerCertificateConfiguration | None:
            """Asked by threads of gRPC at each handshake. Making them anew costs, so only what has changed is given."""
            nonlocal given
            if self._pair is given:
                return None
            given = self._pair
            return given.for_grpc

        # None for "as before" is gRPC's own word; its stubs do not know it.
        return grpc.dynamic_ssl_server_credentials(given.for_grpc, renewed, False)  # type: ignore[arg-type]

    def look_now(self) -> None:
        self._asked.set()

    async def follow(self) -> None:
        """Take over renewed files until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await self._asked.wait()
            self._asked.clear()
            self._renew()

    def _renew(self) -> None:
        try:
            if _version(self._files) == self._pair.version:
                return
            self._pair = _load(self._files)
        except (CertificateError, OSError) as error:
            log.warning("certificate was not renewed", error=str(error))
        else:
            log.info("certificate renewed", certificate=os.fspath(self._files.certificate))

    def _choose(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._pair.context
        setattr(connection, _ASKED_FOR, name)


def name_asked_for(transport: asyncio.BaseTransport | None) -> str:
    """By which name the client asked for this server in TLS; empty if it said none. The server side forgets it."""
    connection = transport.get_extra_info("ssl_object") if transport is not None else None
    return getattr(connection, _ASKED_FOR, None) or ""


def _load(files: CertificateFiles) -> _Pair:
    try:
        version = _version(files)
        context = _context()
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
        key, chain = files.key.read_bytes(), files.certificate.read_bytes()
        if version != _version(files):
            raise CertificateError(f"{files.certificate} or {files.key} is being written; it is read again later")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateError(
            f"{files.certificate} and {files.key} are not a certificate and its key ({type(error).__name__}: "
            f"{getattr(error, 'reason', None) or getattr(error, 'strerror', None) or 'unreadable'})"
        ) from None
    return _Pair(version, context, grpc.ssl_server_certificate_configuration([(key, chain)]))


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    """Without it, OpenSSL would ask on the terminal and wait."""
    raise ValueError("the key is encrypted")


def _version(files: CertificateFiles) -> tuple[tuple[int, int, int], ...]:
    found = [path.stat() for path in (files.certificate, files.key)]
    return tuple((file.st_mtime_ns, file.st_ino, file.st_size) for file in found)
