"""The Ed25519 keys that session tokens are signed with. They are rotated every month; an old key stays valid for hours.

A process that verifies tokens (`kairship.access.session_tokens`) needs only the public keys.
"""

import itertools
from typing import Any

import msgspec
import sqlalchemy as sa
from joserfc import jwt
from joserfc.jwk import KeySet, OKPKey

from kairship.access.session_tokens import ALGORITHM, Claims
from kairship.ghippo.database.schema import signing_keys
from kairship.ghippo.identity import directory
from kairship.ghippo.sealing import Sealer

LIFETIME = 300
"""Seconds for which a session token is valid."""
_ROTATE_AFTER = 30 * 86400
_KEPT = 2 * 3600
"""Seconds for which a key is published after its successor was created; tokens live for minutes."""
_ANNOUNCED = 60
"""Seconds before a new key signs, so that every verifier has received it."""


class Signer:
    """The present keys. `load` reads them, and creates a new one when it is due."""

    def __init__(self, keys: KeySet, signing: OKPKey) -> None:
        self._keys = keys
        self._signing = signing

    def __repr__(self) -> str:
        return f"Signer({[key.kid for key in self._keys.keys]})"

    @classmethod
    def load(cls, connection: sa.Connection, sealer: Sealer, *, at: int) -> "Signer":
        """Reads the keys in a write transaction."""
        rows = connection.execute(sa.select(signing_keys).order_by(signing_keys.c.created_at.desc())).all()
        if not rows or rows[0].created_at + _ROTATE_AFTER <= at:
            key = OKPKey.generate_key("Ed25519", auto_kid=True)
            connection.execute(
                sa.insert(signing_keys).values(id=key.kid, sealed_key=sealer.seal(_private(key)), created_at=at)
            )
            directory.record_changes(connection, "keys", [str(key.kid)], at=at)
            rows = connection.execute(sa.select(signing_keys).order_by(signing_keys.c.created_at.desc())).all()
        for successor, row in itertools.pairwise(rows):
            if successor.created_at + _KEPT < at:
                connection.execute(sa.delete(signing_keys).where(signing_keys.c.id == row.id))
        keys = [OKPKey.import_key(_parsed(sealer.open(row.sealed_key))) for row in rows]
        announced = [key for key, row in zip(keys, rows, strict=True) if row.created_at + _ANNOUNCED <= at]
        return cls(KeySet([*keys]), announced[0] if announced else keys[-1])

    def sign(self, claims: Claims) -> str:
        header = {"alg": ALGORITHM, "kid": self._signing.kid, "typ": "JWT"}
        return jwt.encode(header, msgspec.to_builtins(claims), self._signing, algorithms=[ALGORITHM])

    def public_keys(self) -> dict[str, Any]:
        """The public keys as a JSON Web Key Set."""
        return {"keys": [key.as_dict(private=False) for key in self._keys.keys]}


def _private(key: OKPKey) -> str:
    return msgspec.json.encode(key.as_dict(private=True)).decode()


def _parsed(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
