"""Which API server a request is for: an instance, or a member cluster of it.

It is named by the path (`…/instances/{instance}/proxy/…`, `…/clusters/{cluster}/proxy/…` below the instance), or,
whatever the path is, by a host name in TLS or in the header `Host`.

An ambiguous path is refused in any encoding: the servers behind the entrance may read it differently.
"""

import re
from urllib.parse import unquote

import msgspec

from kairship.rpc.errors import InvalidArgument, NotFound
from kairship.rpc.native_access import PREFIX, NativeEndpoint, is_native_host

_PATH = re.compile(PREFIX + r"(?P<instance>[^/]+)(?:/clusters/(?P<cluster>[^/]+))?/proxy(?P<path>/.*)?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# The characters of a segment of a Kubernetes path. Some names have a colon, as those of roles do.
_SEGMENT = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@ -]+")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    instance: str
    cluster: str | None
    """A member of the instance; None for the instance itself."""
    path: str
    """The path at the target's API server, percent-encoded, with its leading slash."""

    @property
    def upstream_path(self) -> str:
        """The path at the instance's API server, which reaches a member through Karmada's cluster proxy."""
        if self.cluster is None:
            return self.path
        return f"/apis/cluster.karmada.io/v1alpha1/clusters/{self.cluster}/proxy{self.path}"


def target_of_path(path: str) -> Target | None:
    """None if the path is not one of the proxy. Raises `InvalidArgument` if it is ambiguous."""
    if not path.startswith(PREFIX):
        return None
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    return _target(found["instance"], found["cluster"], found["path"] or "/")


def target_of_host(server_name: str, host: str, path: str) -> Target | None:
    """`server_name` is the one that TLS named (SNI), `host` the header. None if neither names an instance.

    Two different names are refused: a load balancer or filter in front may have looked at the other one.
    """
    names = {name.lower() for name in (server_name, host.partition(":")[0]) if is_native_host(name)}
    if not names:
        return None
    if len(names) > 1:
        raise InvalidArgument("the server name in TLS and the header Host name different places; send one name only")
    way = NativeEndpoint.from_host(names.pop())
    if way is None:
        raise NotFound("no instance and no member cluster has this host name; check the server of your kubeconfig")
    return _target(way.instance, way.cluster, path)


def _target(instance: str, cluster: str | None, path: str) -> Target:
    if not _LABEL.fullmatch(instance):
        raise InvalidArgument(violations=[("instance", "is not the name of an instance")])
    if cluster is not None and (not _NAME.fullmatch(cluster) or ".." in cluster):
        raise InvalidArgument(violations=[("cluster", "is not the name of a cluster")])
    _require_unambiguous(path)
    return Target(instance=instance, cluster=cluster, path=path)


def _require_unambiguous(path: str) -> None:
    segments = path[1:].split("/")
    if segments[-1] == "":
        segments.pop()
    for segment in segments:
        decoded = unquote(segment, errors="replace")
        # Nothing may be left to decode: "%252e" is a dot to a server that decodes twice.
        if not _SEGMENT.fullmatch(decoded) or decoded in {".", ".."} or not segment.isascii():
            raise InvalidArgument(
                "the path has a segment that is empty, is a dot segment, or has characters that no name has"
            )
