"""The keys that session tokens are signed with: Ed25519, made anew every month, the old one good for a while longer.

Whoever verifies needs the public halves only (`public_keys`), and no question to anybody per request.
"""

import itertools
from typing import Any

import msgspec
import sqlalchemy as sa
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, OKPKey

from kairship.ghippo import directory
from kairship.ghippo.database.schema import signing_keys
from kairship.ghippo.errors import Unauthenticated
from kairship.ghippo.sealing import Sealer

ALGORITHM = "Ed25519"
ISSUER = "kairship"
LIFETIME = 300
_ROTATE_AFTER = 30 * 86400
_KEPT = 2 * 3600
"""How long a key is offered after its successor was made; tokens live for minutes."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    sub: str
    """The user."""
    sid: str
    """The session."""
    exp: int
    iat: int
    csrf: str
    """Hash of the CSRF token that belongs to the session, in hexadecimal."""
    iss: str = ISSUER
    aud: str = ISSUER
    chg: bool = False
    """The password must be changed first."""


class Signer:
    """The keys of one moment. `load` reads them, and makes a new one when it is time."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    def __repr__(self) -> str:
        return f"Signer({[key.kid for key in self._keys.keys]})"

    @classmethod
    def load(cls, connection: sa.Connection, sealer: Sealer, *, at: int) -> "Signer":
        """In the transaction of a writer."""
        rows = connection.execute(sa.select(signing_keys).order_by(signing_keys.c.created_at.desc())).all()
        if not rows or rows[0].created_at + _ROTATE_AFTER <= at:
            key = OKPKey.generate_key("Ed25519", auto_kid=True)
            connection.execute(
                sa.insert(signing_keys).values(id=key.kid, sealed_key=sealer.seal(_private(key)), created_at=at)
            )
            directory.note(connection, "keys", [str(key.kid)], at=at)
            rows = connection.execute(sa.select(signing_keys).order_by(signing_keys.c.created_at.desc())).all()
        for successor, row in itertools.pairwise(rows):
            if successor.created_at + _KEPT < at:
                connection.execute(sa.delete(signing_keys).where(signing_keys.c.id == row.id))
        return cls(KeySet([OKPKey.import_key(_parsed(sealer.open(row.sealed_key))) for row in rows]))

    def sign(self, claims: Claims) -> str:
        key = self._keys.keys[0]
        header = {"alg": ALGORITHM, "kid": key.kid, "typ": "JWT"}
        return jwt.encode(header, msgspec.to_builtins(claims), key, algorithms=[ALGORITHM])

    def public_keys(self) -> dict[str, Any]:
        """A JSON Web Key Set without anything private."""
        return {"keys": [key.as_dict(private=False) for key in self._keys.keys]}


class Verifier:
    def __init__(self, public_keys: dict[str, Any]) -> None:
        self._keys = KeySet.import_key_set(public_keys)  # type: ignore[arg-type]

    def verify(self, token: str, *, at: int) -> Claims:
        """Raises `Unauthenticated`, and says of what is wrong no more than that."""
        try:
            decoded = jwt.decode(token, self._keys, algorithms=[ALGORITHM])
            claims = msgspec.convert(decoded.claims, Claims)
        except (JoseError, ValueError, msgspec.ValidationError) as error:
            raise Unauthenticated("the session token is not valid; sign in again") from error
        if claims.iss != ISSUER or claims.aud != ISSUER or claims.exp <= at or claims.iat > at + 60:
            raise Unauthenticated("the session token has expired; refresh it or sign in again")
        return claims


def _private(key: OKPKey) -> str:
    return msgspec.json.encode(key.as_dict(private=True)).decode()


def _parsed(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
