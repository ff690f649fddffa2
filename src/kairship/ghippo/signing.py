"""The keys that session tokens are signed with: Ed25519, made anew every month, the old one good for a while longer.

Whoever verifies (`kairship.access.session_tokens`) needs the public halves only, and asks nobody per request.
"""

import itertools
from typing import Any

import msgspec
import sqlalchemy as sa
from joserfc import jwt
from joserfc.jwk import KeySet, OKPKey

from kairship.access.session_tokens import ALGORITHM, Claims
from kairship.ghippo import directory
from kairship.ghippo.database.schema import signing_keys
from kairship.ghippo.sealing import Sealer

LIFETIME = 300
_ROTATE_AFTER = 30 * 86400
_KEPT = 2 * 3600
"""How long a key is offered after its successor was made; tokens live for minutes."""
_ANNOUNCED = 60
"""A new key signs when everybody who verifies has had so many seconds to hear of it."""


class Signer:
    """The keys of one moment. `load` reads them, and makes a new one when it is time."""

    def __init__(self, keys: KeySet, signing: OKPKey) -> None:
        self._keys = keys
        self._signing = signing

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
        keys = [OKPKey.import_key(_parsed(sealer.open(row.sealed_key))) for row in rows]
        known = [key for key, row in zip(keys, rows, strict=True) if row.created_at + _ANNOUNCED <= at]
        return cls(KeySet([*keys]), known[0] if known else keys[-1])

    def sign(self, claims: Claims) -> str:
        header = {"alg": ALGORITHM, "kid": self._signing.kid, "typ": "JWT"}
        return jwt.encode(header, msgspec.to_builtins(claims), self._signing, algorithms=[ALGORITHM])

    def public_keys(self) -> dict[str, Any]:
        """A JSON Web Key Set without anything private."""
        return {"keys": [key.as_dict(private=False) for key in self._keys.keys]}


def _private(key: OKPKey) -> str:
    return msgspec.json.encode(key.as_dict(private=True)).decode()


def _parsed(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
