"""Session tokens: the JWTs that global management signs when a user signs in, and their verification.

A process that verifies them needs only the public keys, and makes no request. A token names its session; whether that
session has been ended is checked elsewhere (`Identities`).
"""

from typing import Any

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

ALGORITHM = "Ed25519"
ISSUER = "kairship"
_SKEW = 60


class SessionTokenError(Exception):
    """The token is not valid. The message is for the client that sent it, and says no more than what to do."""


class SessionExpiredError(SessionTokenError):
    """The token was valid, and has expired."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a session token."""

    sub: str
    """The identifier of the user."""
    sid: str
    """The identifier of the session."""
    exp: int
    iat: int
    csrf: str
    """Hash of the CSRF token that belongs to the session, in hexadecimal."""
    iss: str = ISSUER
    aud: str = ISSUER
    chg: bool = False
    """Whether the user must change the password before anything else."""


class Verifier:
    def __init__(self, public_keys: dict[str, Any]) -> None:
        """`public_keys` is a JSON Web Key Set."""
        self._keys = KeySet.import_key_set(public_keys)  # type: ignore[arg-type]

    def verify(self, token: str, *, at: float) -> Claims:
        """Raises `SessionTokenError`."""
        try:
            decoded = jwt.decode(token, self._keys, algorithms=[ALGORITHM])
            claims = msgspec.convert(decoded.claims, Claims)
        except (JoseError, ValueError, msgspec.ValidationError) as error:
            raise SessionTokenError("the session token is not valid; sign in again") from error
        if claims.iss != ISSUER or claims.aud != ISSUER or claims.iat > at + _SKEW:
            raise SessionTokenError("the session token is not valid; sign in again")
        check_time(claims, at=at)
        return claims


def check_time(claims: Claims, *, at: float) -> None:
    if claims.exp <= at:
        raise SessionExpiredError("the session token has expired; refresh it or sign in again")
