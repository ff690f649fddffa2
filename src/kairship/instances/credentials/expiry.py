"""When a credential expires, as far as it says so itself. Nothing is verified here: the cluster does that."""

import datetime as dt

import msgspec
from cryptography import x509

from kairship.instances.credentials.claims import read_claims, timestamp
from kairship.kube import Connection


class _Claims(msgspec.Struct):
    exp: float | None = None


def expires_at(connection: Connection) -> dt.datetime | None:
    """Returns the earlier expiry, if the connection has both a certificate and a token; None if it is not known."""
    ends = [_of_certificate(connection.client_cert), _of_token(connection.token)]
    return min((end for end in ends if end is not None), default=None)


def _of_certificate(pem: bytes | None) -> dt.datetime | None:
    if pem is None:
        return None
    try:
        # The first certificate is the client's own; those of authorities follow.
        return x509.load_pem_x509_certificates(pem)[0].not_valid_after_utc
    except ValueError:
        return None


def _of_token(token: str | None) -> dt.datetime | None:
    claims = read_claims(token, _Claims)
    return timestamp(claims.exp) if claims is not None else None
