"""The addresses under which the entrance serves the Kubernetes API of an instance, or of a member of it.

An address is a path below the URL of the plane; or, for clients that drop the path of a server, a host name in TLS
(SNI) or in `Host`. Host names need no DNS, because a kubeconfig has `tls-server-name`. Names of members are in a
domain of their own, so that one wildcard of a certificate covers each domain and no name can be read in two ways.

The module imports neither gRPC nor protobuf: the command line uses it, and has to start quickly.
"""

import msgspec

from kairship.kube.config.kubeconfig import ClusterEntry, UserEntry, write_kubeconfig

PREFIX = "/apis/kairship.io/v1alpha1/instances/"
INSTANCE_DOMAIN = "instances.kairship.local"
MEMBER_DOMAIN = "members.kairship.local"
CERTIFIED_NAMES = (f"*.{INSTANCE_DOMAIN}", f"*.{MEMBER_DOMAIN}")
"""The names that a certificate of the entrance must cover, besides the entrance's own."""

_SEPARATOR = "--"
_LONGEST_LABEL = 63


class NativeEndpoint(msgspec.Struct, frozen=True):
    """The Kubernetes API of one instance or member."""

    instance: str
    cluster: str | None = None
    """A member of the instance; None for the instance itself."""

    @property
    def path(self) -> str:
        below = f"/clusters/{self.cluster}" if self.cluster else ""
        return f"{PREFIX}{self.instance}{below}/proxy"

    @property
    def host(self) -> str | None:
        """None if no host name means this endpoint and nothing else."""
        if self.cluster is None:
            return f"{self.instance}.{INSTANCE_DOMAIN}"
        label = f"{self.cluster}{_SEPARATOR}{self.instance}"
        if len(label) > _LONGEST_LABEL or label.count(_SEPARATOR) != 1 or "." in label:
            return None
        return f"{label}.{MEMBER_DOMAIN}"

    @property
    def context_name(self) -> str:
        """The name of its context in a kubeconfig."""
        return f"{self.instance}-{self.cluster}" if self.cluster else self.instance

    @classmethod
    def from_host(cls, host: str) -> "NativeEndpoint | None":
        """None if the host name is that of no endpoint."""
        label, _, domain = host.lower().rstrip(".").partition(".")
        if domain == INSTANCE_DOMAIN and label:
            return cls(label)
        if domain == MEMBER_DOMAIN and label.count(_SEPARATOR) == 1:
            cluster, _, instance = label.partition(_SEPARATOR)
            return cls(instance, cluster) if cluster and instance else None
        return None


def is_native_host(host: str) -> bool:
    """Whether the host name is in a domain of endpoints, whether or not there is such an endpoint."""
    return host.lower().rstrip(".").endswith((f".{INSTANCE_DOMAIN}", f".{MEMBER_DOMAIN}"))


def kubeconfig(
    endpoint: NativeEndpoint,
    *,
    server: str,
    ca: bytes | None,
    user: str,
    credential: UserEntry,
    host: str | None = None,
) -> bytes:
    """A kubeconfig whose only context is `endpoint`.

    `server` is the URL of the plane. With `host` the endpoint is addressed by that name, otherwise by its path.
    """
    cluster = ClusterEntry(
        server=server if host else server + endpoint.path, certificate_authority_data=ca, tls_server_name=host
    )
    return write_kubeconfig(endpoint.context_name, cluster, user, credential)


def exec_credential(server: str) -> UserEntry:
    """The exec credential plugin by which kubectl asks the `kairship` command for the token of this plane only."""
    return UserEntry(
        exec={
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "kairship",
            "args": ["token", "--server", server],
            "interactiveMode": "Never",
            "installHint": f"Install the command `kairship`, then `kairship login --server {server}`.",
        }
    )
