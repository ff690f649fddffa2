"""Builds the TLS context of a connection from certificates in memory."""

import os
import ssl

from kairship.kube.config.connection import Connection
from kairship.kube.errors import ConfigError


def ssl_context(connection: Connection) -> ssl.SSLContext:
    """Returns a context that verifies the server and presents the client certificate.

    Building one costs milliseconds: keep it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without ALPN an API server might choose HTTP/2, which the client does not speak.
    context.set_alpn_protocols(["http/1.1"])
    if connection.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif connection.ca is None:
        context.load_default_certs()
    else:
        # Every certificate of the bundle is a trust anchor, even an intermediate one, as in other Kubernetes clients.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _load_ca(context, connection.ca, connection.server)
    if connection.client_cert is not None and connection.client_key is not None:
        _load_identity(context, connection.client_cert, connection.client_key, connection.server)
    return context


def _load_ca(context: ssl.SSLContext, ca: bytes, server: str) -> None:
    try:
        context.load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError):
        raise ConfigError(f"the CA for {server} is not a PEM certificate") from None


def _load_identity(context: ssl.SSLContext, certificate: bytes, key: bytes, server: str) -> None:
    # Python's ssl loads the pair only from files. An anonymous file in memory has no name and never touches a disk.
    descriptor = os.memfd_create("kairship-client-identity", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            # With an empty password an encrypted key fails; without one OpenSSL would prompt on the terminal.
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
        except (ssl.SSLError, OSError):
            raise ConfigError(
                f"the client certificate for {server} cannot be used: "
                "it and its key must be PEM, not encrypted, and belong together"
            ) from None
