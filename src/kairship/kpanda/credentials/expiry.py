"""When a credential ends, as far as it says so itself. Nothing is verified here: that is the cluster's matter."""

import base64
import binascii
import datetime as dt

import msgspec
from cryptography import x509

from kairship.kube import Connection

_LONGEST_TOKEN = 64 * 1024


class _Claims(msgspec.Struct):
    exp: float | None = None


def expires_at(connection: Connection) -> dt.datetime | None:
    """The earlier end, where there are both a certificate and a token."""
    ends = [_of_certificate(connection.client_cert), _of_token(connection.token)]
    return min((end for end in ends if end is not None), default=None)


def _of_certificate(pem: bytes | None) -> dt.datetime | None:
    if pem is None:
        return None
    try:
        # The first one is the client's own; those of authorities follow.
        return x509.load_pem_x509_certificates(pem)[0].not_valid_after_utc
    except ValueError:
        return None


def _of_token(token: str | None) -> dt.datetime | None:
    """Of a JSON Web Token, which those of service accounts and of OpenID Connect are."""
    parts = (token or "").split(".")
    if len(parts) != 3 or len(parts[1]) > _LONGEST_TOKEN:
        return None
    try:
        claims = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        end = msgspec.json.decode(claims, type=_Claims).exp
        return None if end is None else dt.datetime.fromtimestamp(end, dt.UTC)
    except (binascii.Error, msgspec.DecodeError, OverflowError, OSError, ValueError):
        return None
