"""The settings of the apiserver: paths and addresses only, because secrets stay in their files."""

from pathlib import Path

import msgspec

from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.services import EXTERNAL, AvailableDriver, PublicAddress
from kairship.index.index_access import IndexLocation
from kairship.process.certificates import CertificateFiles
from kairship.rpc.backend_channel import BackendAddress


class Address(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 0
    """0 means any free port."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    rest: Address
    grpc: Address
    ops: Address
    """Where health and metrics are served: plain HTTP, for loopback or a pod's own network."""
    metrics_token: Path | None = None
    """A file with the token that `/metrics` asks for. Without it nobody gets metrics."""
    kubeconfig: Path
    """The kubeconfig of the global cluster. A token file that it names is read again as it rotates."""
    ghippo: BackendAddress
    """Global management, which is the authority on users, groups and tokens."""
    audit_dir: Path
    """Where the audit is spooled until global management has stored it. It should outlive the process."""
    tls: CertificateFiles | None = None
    """Without a certificate, only loopback addresses are served."""
    drivers: tuple[AvailableDriver, ...] = (EXTERNAL,)
    """The drivers and Karmada versions that the controller-manager of this plane offers."""
    index: IndexLocation = IndexLocation()
    """Where the index is. Without it, objects are read from the instances themselves."""
    kpanda: BackendAddress | None = None
    """Container management. Without it, its services are not available."""
    public: PublicAddress | None = None
    """The address of the entrance for kubeconfigs. Without it, none are issued."""
    workers: int = 1
    linger: float = 0.0
    """Seconds in which new connections are still accepted after the health has changed to not serving."""
    grace: float = 30.0
    """Seconds that requests have to end when the process stops."""
    limits: Limits = Limits()
    allow_addresses: tuple[str, ...] = ()
    """Networks in which instances may be although they are loopback, link-local or otherwise special."""
    reserved_namespaces: tuple[str, ...] = ()
    """Further namespaces that are reserved, as those of Kubernetes and Karmada are."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks of load balancers whose `X-Forwarded-For` is believed."""
