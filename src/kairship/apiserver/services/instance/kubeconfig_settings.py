"""What the operator of the plane decides about the kubeconfigs that it issues."""

from pathlib import Path

import msgspec

from kairship.rpc.errors import Unavailable


class PublicAddress(msgspec.Struct, frozen=True):
    """The address at which users reach the entrance."""

    url: str
    """https://host:port, without a path."""
    ca: Path | None = None
    """The CA of the certificate that users see there, in PEM; None for a CA that every system trusts."""

    def ca_bundle(self) -> bytes | None:
        """Reads the file each time, because it may have been renewed."""
        try:
            return self.ca.read_bytes() if self.ca else None
        except OSError:
            raise Unavailable(
                "the CA of the entrance's certificate cannot be read: ask the plane's operator to check --public-ca"
            ) from None


class KubeconfigSettings(msgspec.Struct, frozen=True, kw_only=True):
    public: PublicAddress | None = None
    """The address that kubeconfigs lead to; without it none are issued."""
    max_lifetime: int = 24 * 3600
    """For how many seconds a kubeconfig is valid at most."""
