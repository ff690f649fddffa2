"""How container management runs. Paths and addresses only: what is secret stays in the files.

The address of a PostgreSQL database has a password in it, so it is in a file too.
"""

from pathlib import Path

import msgspec

from kairship.kpanda.collector import CollectorSettings
from kairship.kube import AddressRule
from kairship.process.certificates import CertificateFiles
from kairship.process.starting import StartError
from kairship.reconcile import Timing

AUDIENCE = "kairship-kpanda"
"""What tokens of those who may call are for."""
CALLERS = ("kairship-apiserver",)
"""Accounts of the plane that may call: the entrance, whose word is taken for a person."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    kubeconfig: Path
    """Leads to the global cluster. A token file in it is read again as it rotates."""
    tls: CertificateFiles
    index: Path | None = None
    """Where the index is kept in files; one process only can write there."""
    index_url_file: Path | None = None
    """A file with the address of a PostgreSQL database for the index, which any number of replicas may share."""
    addresses: AddressRule = AddressRule()
    """Where clusters may be."""
    collector: CollectorSettings = CollectorSettings()
    host: str = "127.0.0.1"
    port: int = 0
    """Of gRPC; 0 takes any that is free."""
    ops_host: str = "127.0.0.1"
    ops_port: int = 0
    """Of health and metrics."""
    timing: Timing = Timing()
    """By which replicas notice that one of them is gone."""

    def read_index_place(self) -> str:
        """A directory, or the address of a database."""
        if (self.index is None) == (self.index_url_file is None):
            raise StartError("say where the index is kept: --index for files, or --index-url-file for a database")
        if self.index_url_file is None:
            return str(self.index)
        try:
            url = self.index_url_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise StartError(f"{self.index_url_file} cannot be read: {type(error).__name__}") from None
        if not url.startswith(("postgresql://", "postgres://")):
            raise StartError(f"{self.index_url_file} must hold an address that begins with postgresql://")
        return url
