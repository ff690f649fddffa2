"""The settings of container management. They have paths and addresses only: secrets stay in files.

The URL of a PostgreSQL database has a password in it, so it is in a file too.
"""

from pathlib import Path

import msgspec

from kairship.kpanda.collector import CollectorSettings
from kairship.kube import AddressRule
from kairship.process.certificates import CertificateFiles
from kairship.process.start_error import StartError
from kairship.reconcile import LeaseTiming

AUDIENCE = "kairship-kpanda"
"""The audience of the tokens with which other processes call container management."""
CALLERS = ("kairship-apiserver",)
"""The service accounts that may call: only that of the entrance, which says on whose behalf it calls."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    kubeconfig: Path
    """The kubeconfig of the global cluster. A token file in it is read again when it rotates."""
    tls: CertificateFiles
    index: Path | None = None
    """The directory of the index, if it is kept in files. Only one process can write there."""
    index_url_file: Path | None = None
    """A file with the URL of a PostgreSQL database for the index, which any number of replicas may share."""
    addresses: AddressRule = AddressRule()
    """The addresses that clusters may have."""
    collector: CollectorSettings = CollectorSettings()
    host: str = "127.0.0.1"
    port: int = 0
    """The port of gRPC; 0 takes any free port."""
    ops_host: str = "127.0.0.1"
    ops_port: int = 0
    """The port of health and metrics."""
    metrics_token: Path | None = None
    """A file with the token that `/metrics` asks for. Without it nobody gets metrics."""
    timing: LeaseTiming = LeaseTiming()
    """The timing of the Leases by which replicas notice that one of them is gone."""

    def read_index_location(self) -> str:
        """The location of the index: a directory, or the URL of a database. Raises `StartError`."""
        if (self.index is None) == (self.index_url_file is None):
            raise StartError("say where the index is kept: --index for files, or --index-url-file for a database")
        if self.index_url_file is None:
            return str(self.index)
        try:
            url = self.index_url_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise StartError(f"{self.index_url_file} cannot be read: {type(error).__name__}") from None
        if not url.startswith(("postgresql://", "postgres://")):
            raise StartError(f"{self.index_url_file} must hold a URL that begins with postgresql://")
        return url
