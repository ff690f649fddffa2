"""The settings of global management. They hold only paths and addresses: secrets stay in their files.

The URL of a PostgreSQL database contains a password, so it is in a file too.
"""

from pathlib import Path

import msgspec

from kairship.kube import AddressRule
from kairship.process.certificates import CertificateFiles
from kairship.process.start_error import StartError
from kairship.reconcile import LeaseName
from kairship.resources import NAMESPACE

LEASE = LeaseName(NAMESPACE, "kairship-ghippo")
AUDIENCE = "kairship-ghippo"
"""The audience of the service account tokens that callers present."""
CALLERS = ("kairship-apiserver",)
"""The service accounts that may call: only the entrance, which names the user on whose behalf it calls."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    kubeconfig: Path
    """The kubeconfig of the global cluster. A token file that it names is read again as it rotates."""
    data: Path
    """The directory of the sealing key, and of the SQLite database unless `database_url` is set."""
    tls: CertificateFiles
    database_url: Path | None = None
    """A file with the URL of a PostgreSQL database. Without it there is one replica, on SQLite."""
    first_password: Path | None = None
    """A file with the initial password of the first administrator, who must change it."""
    first_token: Path | None = None
    """A file with an access token of the first administrator."""
    webhook: str | None = None
    """The URL at which the entrance of this plane receives bindings."""
    webhook_ca: Path | None = None
    """The CA of that URL's certificate."""
    addresses: AddressRule = AddressRule()
    """The addresses that webhooks and identity providers may have, which users enter. `webhook` may have any."""
    host: str = "127.0.0.1"
    port: int = 0
    """The port of gRPC; 0 takes any free port."""
    ops_host: str = "127.0.0.1"
    ops_port: int = 0
    """The port of health and metrics."""
    metrics_token: Path | None = None
    """A file with the token that `/metrics` asks for. Without it nobody gets metrics."""
    audit_days: int = 365
    """Days for which entries of the audit log are kept."""

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
