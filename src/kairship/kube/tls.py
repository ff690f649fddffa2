"""The TLS side of a connection, built from bytes in memory."""

import os
import ssl

from .connection import Connection
from .errors import ConfigError


def ssl_context(connection: Connection) -> ssl.SSLContext:
    """Verifies the server and shows the client certificate. Building one costs milliseconds: keep it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without this an API server would be free to choose HTTP/2, which the client does not speak.
    context.set_alpn_protocols(["http/1.1"])
    if connection.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif connection.ca is None:
        context.load_default_certs()
    else:
        # Any certificate of the bundle is an anchor, an intermediate one too, as for every other Kubernetes client.
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
    # OpenSSL's binding takes the pair only from files. An anonymous one in memory has no name and never touches a disk.
    descriptor = os.memfd_create("kairship-client-identity", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            # An empty password: an encrypted key must fail, where the default would ask on the terminal.
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
        except (ssl.SSLError, OSError):
            raise ConfigError(
                f"the client certificate for {server} cannot be used: "
                "it and its key must be PEM, not encrypted, and belong together"
            ) from None
