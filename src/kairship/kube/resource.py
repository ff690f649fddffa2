"""A resource of an API server, and the paths of its objects."""

from urllib.parse import quote

import msgspec

_UNSAFE = frozenset("/%\\")


class Resource(msgspec.Struct, frozen=True):
    """One served kind: `deployments` of `apps/v1`. The group of the core API is the empty string."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @classmethod
    def of(cls, api_version: str, plural: str, *, kind: str, namespaced: bool) -> "Resource":
        group, _, version = api_version.rpartition("/")
        return cls(group=group, version=version, plural=plural, kind=kind, namespaced=namespaced)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Returns the path of one object, of its subresource, or (without `name`) of the collection.

        Users choose names, so what cannot be a name is refused: no name leads to another path.
        """
        root = group_version_path(self.api_version)
        if namespace is not None:
            if not self.namespaced:
                raise ValueError(f"{self.plural} are not namespaced, but a namespace was given")
            root += f"/namespaces/{_segment(namespace)}"
        elif self.namespaced and name is not None:
            raise ValueError(f"{self.plural} are namespaced: one of them has no path without its namespace")
        path = f"{root}/{_segment(self.plural)}"
        if name is not None:
            path += f"/{_segment(name)}"
        if subresource is not None:
            if name is None:
                raise ValueError("a subresource belongs to one object, but no name was given")
            # A subresource may be a path itself: services/x/proxy/metrics.
            path += "".join(f"/{_segment(part)}" for part in subresource.split("/"))
        return path


def group_version_path(api_version: str) -> str:
    """Returns the path of a group version: `/apis/apps/v1`, and `/api/v1` for the core API."""
    group, _, version = api_version.rpartition("/")
    return f"/apis/{_segment(group)}/{_segment(version)}" if group else f"/api/{_segment(version)}"


def is_path_segment(text: str) -> bool:
    """Whether a text can be a name in a path. Kubernetes accepts no other names, of any kind.

    Encoding alone would not do: a proxy on the way, such as Karmada's to its members, decodes a path before it sends
    the request on.
    """
    return text not in {"", ".", ".."} and not _UNSAFE.intersection(text)


def _segment(text: str) -> str:
    if not is_path_segment(text):
        raise ValueError(f"{text!r} cannot be part of a path")
    return quote(text, safe=":")
