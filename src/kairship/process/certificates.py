"""The certificate of a server, reloaded while the server runs.

The certificate and key files are checked every few seconds, and at once on SIGHUP. A pair that does not match, or that
is only half written, is ignored and the last good pair stays in use. Existing connections keep their certificate.
"""

import asyncio
import os
import ssl
from contextlib import suppress
from pathlib import Path

import grpc
import msgspec
import structlog

from kairship.process.start_error import StartError

CHECK_INTERVAL = 5.0
_SERVER_NAME = "requested_server_name"

log = structlog.get_logger(__name__)


class CertificateFiles(msgspec.Struct, frozen=True):
    certificate: Path
    """A PEM file with the certificate, followed by the intermediate certificates."""
    key: Path


class CertificateError(StartError):
    """The certificate or its key cannot be used."""


class _Pair(msgspec.Struct, frozen=True):
    version: tuple[tuple[int, int, int], ...]
    context: ssl.SSLContext
    for_grpc: grpc.ServerCertificateConfiguration


class ServerCertificate:
    """The current certificate and key, for TLS servers of asyncio and of gRPC."""

    def __init__(self, files: CertificateFiles) -> None:
        """Raises `CertificateError` if the files cannot be used."""
        self._files = files
        self._pair = _load(files)
        self._check_requested = asyncio.Event()
        # Its own certificate is never used: at each handshake the SNI callback switches to the current pair's context.
        self.context = _context()
        self.context.sni_callback = self._use_current_pair

    def grpc_credentials(self) -> grpc.ServerCredentials:
        given = self._pair

        def renewed() -> grpc.ServerCertificateConfiguration | None:
            """Called by gRPC's threads at each handshake. Returns None if nothing changed: a new one is expensive."""
            nonlocal given
            if self._pair is given:
                return None
            given = self._pair
            return given.for_grpc

        # gRPC takes None for "unchanged"; its type stubs do not know that.
        return grpc.dynamic_ssl_server_credentials(given.for_grpc, renewed, False)  # type: ignore[arg-type]

    def check_now(self) -> None:
        """Check the files now instead of after `CHECK_INTERVAL`."""
        self._check_requested.set()

    async def follow(self) -> None:
        """Load renewed files until the task is cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_INTERVAL):
                    await self._check_requested.wait()
            self._check_requested.clear()
            self._reload()

    def _reload(self) -> None:
        try:
            if _version(self._files) == self._pair.version:
                return
            self._pair = _load(self._files)
        except (CertificateError, OSError) as error:
            log.warning("certificate was not renewed", error=str(error))
        else:
            log.info("certificate renewed", certificate=os.fspath(self._files.certificate))

    def _use_current_pair(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._pair.context
        setattr(connection, _SERVER_NAME, name)


def requested_server_name(transport: asyncio.BaseTransport | None) -> str:
    """The server name (SNI) that the client sent; empty if it sent none. Python's TLS server does not keep it."""
    connection = transport.get_extra_info("ssl_object") if transport is not None else None
    return getattr(connection, _SERVER_NAME, None) or ""


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
    """Refuses an encrypted key. Without this callback OpenSSL would ask for the password on the terminal and wait."""
    raise ValueError("the key is encrypted")


def _version(files: CertificateFiles) -> tuple[tuple[int, int, int], ...]:
    found = [path.stat() for path in (files.certificate, files.key)]
    return tuple((file.st_mtime_ns, file.st_ino, file.st_size) for file in found)
