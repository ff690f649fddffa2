"""Sealing: encryption of the secrets that must be read again, such as signing keys and secrets of webhooks.

The key is in a file outside the database, so a stolen copy of the database reveals and signs nothing. Replicas share
the file.
"""

import hashlib
import hmac
import os
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken


class SealBrokenError(Exception):
    """The data was sealed with another key, or was changed since."""


class Sealer:
    def __init__(self, key: bytes) -> None:
        """`key` comes from `generate_key`."""
        self._fernet = Fernet(key)
        self._mac_key = hashlib.sha256(b"kairship audit " + key).digest()

    def __repr__(self) -> str:
        return "Sealer(…)"

    @staticmethod
    def generate_key() -> bytes:
        return Fernet.generate_key()

    @classmethod
    def from_file(cls, path: Path) -> "Sealer":
        """Reads the key from a file, which is created if it is missing. Concurrent processes end up with one key."""
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
                os.link(fresh, path)  # unlike a rename it does not replace an existing file
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
                "the key file does not match this database; restore the key file that belongs to it"
            ) from error

    def mac(self, *parts: bytes) -> bytes:
        """A MAC of these parts. The length of each part is included, so bytes cannot move between parts."""
        mac = hmac.new(self._mac_key, digestmod=hashlib.sha256)
        for part in parts:
            mac.update(len(part).to_bytes(8, "big"))
            mac.update(part)
        return mac.digest()
