"""How the entrance runs. Paths and addresses only: what is secret stays in the files."""

from pathlib import Path

import msgspec

from kairship.apiserver.limits import Limits
from kairship.apiserver.services import EXTERNAL, Offer
from kairship.apiserver.services.instance.part import PublicAddress
from kairship.index.opening import IndexPlace
from kairship.process.certificates import CertificateFiles
from kairship.rpc.role_channel import RoleAddress


class Address(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 0
    """0 takes any that is free."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    rest: Address
    grpc: Address
    ops: Address
    """Of health and metrics: plain HTTP, for loopback or a pod's own network."""
    kubeconfig: Path
    """Leads to the global cluster. A token file in it is read again as it rotates."""
    ghippo: RoleAddress
    """Global management, which says who there is."""
    audit_dir: Path
    """Where what people do is written down until global management has it. It should outlive the process."""
    tls: CertificateFiles | None = None
    """Without it, only loopback is served."""
    offers: tuple[Offer, ...] = (EXTERNAL,)
    """What the controller-manager of this plane can make."""
    index: IndexPlace = IndexPlace()
    """Where objects are read from. Without it they are read from the instances themselves."""
    kpanda: RoleAddress | None = None
    """Container management. Without it, what it owns is not answered."""
    public: PublicAddress | None = None
    """Where people reach this, for kubeconfigs. Without it none are issued."""
    workers: int = 1
    linger: float = 0.0
    """Seconds in which new connections are still accepted after it was said that there will be no more."""
    grace: float = 30.0
    """Seconds that requests have to end when the process stops."""
    limits: Limits = Limits()
    allow_addresses: tuple[str, ...] = ()
    """Networks in which instances may be although they are loopback, link-local or special."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks of balancers that are believed when they say where a request comes from."""
