"""Where a request of the proxy leads: `…/instances/{instance}/proxy/…`, or below it to a member cluster.

Or, whatever the path, where a name leads: in TLS, or in `Host`.

A path that does not mean one thing only is refused, in whatever encoding: proxies behind us may read it differently.
"""

import re
from urllib.parse import unquote

import msgspec

from kairship.kube.native_access import PREFIX, Way, is_a_name_of_ours
from kairship.rpc.errors import InvalidArgument, NotFound

_PATH = re.compile(PREFIX + r"(?P<instance>[^/]+)(?:/clusters/(?P<cluster>[^/]+))?/proxy(?P<path>/.*)?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# What a segment of a path of Kubernetes can be made of. Some names have a colon, as roles do.
_SEGMENT = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@ -]+")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    instance: str
    cluster: str | None
    """A member of the instance; None for the instance itself."""
    path: str
    """There, encoded; begins with a slash."""

    @property
    def upstream(self) -> str:
        """The path at the instance's API server."""
        if self.cluster is None:
            return self.path
        return f"/apis/cluster.karmada.io/v1alpha1/clusters/{self.cluster}/proxy{self.path}"


def target_of(path: str) -> Target | None:
    """None if the path is none of the proxy. Raises `InvalidArgument` if it is one that nobody should follow."""
    if not path.startswith(PREFIX):
        return None
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    return _target(found["instance"], found["cluster"], found["path"] or "/")


def target_by_name(asked_for: str, host: str, path: str) -> Target | None:
    """`asked_for` is the name in TLS, `host` that of HTTP. None if they name no instance.

    Two names that do not agree are refused: whoever looked at one of them may not mean the other.
    """
    names = {name.lower() for name in (asked_for, host.partition(":")[0]) if is_a_name_of_ours(name)}
    if not names:
        return None
    if len(names) > 1:
        raise InvalidArgument("the name in TLS and the header Host lead to different places; use one")
    way = Way.by_host(names.pop())
    if way is None:
        raise NotFound("no instance and no cluster has this name")
    return _target(way.instance, way.cluster, path)


def _target(instance: str, cluster: str | None, below: str) -> Target:
    if not _LABEL.fullmatch(instance):
        raise InvalidArgument(violations=[("instance", "is not the name of an instance")])
    if cluster is not None and (not _NAME.fullmatch(cluster) or ".." in cluster):
        raise InvalidArgument(violations=[("cluster", "is not the name of a cluster")])
    _require_plain(below)
    return Target(instance=instance, cluster=cluster, path=below)


def _require_plain(path: str) -> None:
    segments = path[1:].split("/")
    if segments[-1] == "":
        segments.pop()
    for segment in segments:
        plain = unquote(segment, errors="replace")
        # Once decoded there must be nothing left to decode: "%252e" is a dot to whoever decodes twice.
        if not _SEGMENT.fullmatch(plain) or plain in {".", ".."} or not segment.isascii():
            raise InvalidArgument("the path has a segment that is empty, leads elsewhere, or is no name")
