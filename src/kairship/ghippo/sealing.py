"""Secrets that must be read again (signing keys, webhook secrets, secrets of identity providers) are kept sealed.

The key is a file outside the database: a stolen copy of the database opens nothing and signs nothing. Replicas share
it.
"""

import hashlib
import hmac
import os
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken


class SealBrokenError(Exception):
    """What was sealed was sealed with another key, or was changed since."""


class Sealer:
    def __init__(self, key: bytes) -> None:
        """`key` is what `generate_key` made."""
        self._fernet = Fernet(key)
        self._mac_key = hashlib.sha256(b"kairship audit " + key).digest()

    def __repr__(self) -> str:
        return "Sealer(…)"

    @staticmethod
    def generate_key() -> bytes:
        return Fernet.generate_key()

    @classmethod
    def from_file(cls, path: Path) -> "Sealer":
        """The key in that file, which is made if it is missing. Two processes that both make it end up with one."""
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = path.with_name(f".{path.name}.{os.getpid()}")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(cls.generate_key())
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(fresh, path)  # unlike a rename it does not replace
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
            key = path.read_bytes()
        return cls(key.strip())

    def seal(self, secret: str) -> bytes:
        return self._fernet.encrypt(secret.encode())

    def open(self, sealed: bytes) -> str:
        try:
            return self._fernet.decrypt(bytes(sealed)).decode()
        except InvalidToken as error:
            raise SealBrokenError(
                "the key file does not fit this database; restore the one that belongs to it"
            ) from error

    def mac(self, *parts: bytes) -> bytes:
        """A code that nobody can make without the key. The parts cannot be shifted against each other."""
        code = hmac.new(self._mac_key, digestmod=hashlib.sha256)
        for part in parts:
            code.update(len(part).to_bytes(8, "big"))
            code.update(part)
        return code.digest()
