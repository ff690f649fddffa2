"""How the Kubernetes API of an instance, or of a member of it, is reached through a plane.

By a path below the plane's own address; or by a name in TLS (SNI) or in `Host`, for clients that drop the path of a
server. Names need no DNS: a kubeconfig has `tls-server-name`. What leads to a member is in a domain of its own, so
that one wildcard of a certificate covers each and no name can be read in two ways.
"""

import msgspec

from .kubeconfig import ClusterEntry, UserEntry, written

PREFIX = "/apis/kairship.io/v1alpha1/instances/"
INSTANCES = "instances.kairship.local"
MEMBERS = "members.kairship.local"
CERTIFIED_NAMES = (f"*.{INSTANCES}", f"*.{MEMBERS}")
"""What a certificate of the entrance must be for, besides its own names."""

_BETWEEN = "--"
_LONGEST_LABEL = 63


class Way(msgspec.Struct, frozen=True):
    instance: str
    cluster: str | None = None
    """A member of the instance; None for the instance itself."""

    @property
    def path(self) -> str:
        below = f"/clusters/{self.cluster}" if self.cluster else ""
        return f"{PREFIX}{self.instance}{below}/proxy"

    @property
    def host(self) -> str | None:
        """None if there is no name that means this and nothing else."""
        if self.cluster is None:
            return f"{self.instance}.{INSTANCES}"
        label = f"{self.cluster}{_BETWEEN}{self.instance}"
        if len(label) > _LONGEST_LABEL or label.count(_BETWEEN) != 1 or "." in label:
            return None
        return f"{label}.{MEMBERS}"

    @property
    def title(self) -> str:
        """For a context of a kubeconfig."""
        return f"{self.instance}-{self.cluster}" if self.cluster else self.instance

    @classmethod
    def by_host(cls, host: str) -> "Way | None":
        """None if it is a name of nothing here."""
        label, _, domain = host.lower().rstrip(".").partition(".")
        if domain == INSTANCES and label:
            return cls(label)
        if domain == MEMBERS and label.count(_BETWEEN) == 1:
            cluster, _, instance = label.partition(_BETWEEN)
            return cls(instance, cluster) if cluster and instance else None
        return None


def is_a_name_of_ours(host: str) -> bool:
    """Whether it is in a domain that leads to instances, to one that there is or not."""
    return host.lower().rstrip(".").endswith((f".{INSTANCES}", f".{MEMBERS}"))


def kubeconfig(
    way: Way, *, server: str, ca: bytes | None, user: str, credential: UserEntry, host: str | None = None
) -> bytes:
    """With one context. `server` is the address of the plane; `host` leads there by a name instead of a path."""
    cluster = ClusterEntry(
        server=server if host else server + way.path, certificate_authority_data=ca, tls_server_name=host
    )
    return written(way.title, cluster, user, credential)


def signed_in(server: str) -> UserEntry:
    """The credential of whoever is signed in at a plane: its command line is asked, and only for that plane."""
    return UserEntry(
        exec={
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "kairship",
            "args": ["token", "--server", server],
            "interactiveMode": "Never",
            "installHint": f"Install the command `kairship`, then `kairship login --server {server}`.",
        }
    )
