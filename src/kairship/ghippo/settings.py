"""How global management runs. Paths and addresses only: what is secret stays in the files.

The address of a PostgreSQL database has a password in it, so it is in a file too.
"""

from pathlib import Path

import msgspec

from kairship.process.certificates import CertificateFiles
from kairship.process.starting import StartError
from kairship.reconcile import LeaseName
from kairship.resources import NAMESPACE

LEASE = LeaseName(NAMESPACE, "kairship-ghippo")
AUDIENCE = "kairship-ghippo"
"""What tokens of those who may call are for."""
CALLERS = ("kairship-apiserver",)
"""Accounts of the plane that may call: the entrance, whose word is taken for a person."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    kubeconfig: Path
    """Leads to the global cluster. A token file in it is read again as it rotates."""
    data: Path
    """Where the key that secrets are sealed with is, and the database unless that is elsewhere."""
    tls: CertificateFiles
    database_url: Path | None = None
    """A file with the address of a PostgreSQL database. Without it there is one replica, on SQLite."""
    first_password: Path | None = None
    """A file with the password that the administrator of a new plane has until it is changed."""
    first_token: Path | None = None
    """A file with an access token that the administrator of a new plane has."""
    webhook: str | None = None
    """Where the entrance of this plane takes bindings."""
    webhook_ca: Path | None = None
    """The authority of its certificate."""
    host: str = "127.0.0.1"
    port: int = 0
    """Of gRPC; 0 takes any that is free."""
    ops_host: str = "127.0.0.1"
    ops_port: int = 0
    """Of health and metrics."""
    audit_days: int = 365
    """How long the audit is kept."""

    @property
    def has_replicas(self) -> bool:
        return self.database_url is not None

    @property
    def key(self) -> Path:
        return self.data / "key"

    def read_database_url(self) -> str:
        if self.database_url is None:
            return f"sqlite:///{self.data / 'ghippo.db'}"
        try:
            url = self.database_url.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise StartError(f"{self.database_url} cannot be read: {type(error).__name__}") from None
        if not url.startswith(("postgresql://", "postgres://")):
            raise StartError(f"{self.database_url} must hold an address that begins with postgresql://")
        return url.replace("postgres://", "postgresql://", 1)
