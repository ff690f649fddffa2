"""Discovers which kinds a server serves, when they are needed, and caches them.

The unit of discovery is the group version: one small document, which old servers and aggregated servers have too. It is
read again when the wanted kind is not in it, so a new CRD is found without a restart.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from kairship.kube.decoding import decode
from kairship.kube.errors import BadReply, KubeError, NotFound, ReplyTooLarge, UnknownKind
from kairship.kube.resource import Resource, group_version_path

T = TypeVar("T")

LARGEST_DOCUMENT = 4 << 20
"""Bytes of one document of discovery. The core group of a real server has 20 KiB."""
_MOST_KEPT = 8 * LARGEST_DOCUMENT

Fetch = Callable[[str], Awaitable[bytes]]
"""Reads the document at a path, or raises the typed error."""


class ServedResource(msgspec.Struct, frozen=True):
    """A resource, its verbs and its subresources."""

    resource: Resource
    verbs: frozenset[str]
    subresources: frozenset[str]


class Catalogue(msgspec.Struct, frozen=True):
    """Everything that a server serves, each group in the preferred version."""

    resources: tuple[ServedResource, ...]
    failed: dict[str, KubeError]
    """The group versions that could not be read, often because an aggregated API is down. Their kinds are unknown, not
    gone."""


class _ApiResource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False
    verbs: list[str] = []


class _ApiResourceList(msgspec.Struct):
    resources: list[_ApiResource] | None = None


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, rename="camel"):
    preferred_version: _GroupVersion


class _GroupList(msgspec.Struct):
    groups: list[_Group]


class Discovery:
    """Discovers the kinds of one server."""

    def __init__(self, fetch: Fetch, *, server: str) -> None:
        self._fetch = fetch
        self._server = server
        self._known: dict[str, tuple[ServedResource, ...]] = {}
        self._sizes: dict[str, int] = {}  # bytes of the documents that are known

    async def find(self, api_version: str, kind: str) -> Resource:
        """Returns the resource of a kind. Raises `UnknownKind` if the server does not have it now."""
        found = _pick(self._known.get(api_version, ()), kind)
        if found is None:
            try:
                found = _pick(await self._group_version(api_version), kind)
            except NotFound:
                found = None
        if found is None:
            raise UnknownKind(
                f"{self._server} does not serve {kind} of {api_version}; install its CRD or API service first"
            )
        return found

    async def catalogue(self) -> Catalogue:
        """Reads everything that the server serves, without the cache."""
        groups = self._decode(await self._fetch("/apis"), _GroupList).groups
        versions = ["v1", *(group.preferred_version.group_version for group in groups)]
        async with asyncio.TaskGroup() as tasks:
            answers = {version: tasks.create_task(self._try_group_version(version)) for version in versions}
        served: list[ServedResource] = []
        failed: dict[str, KubeError] = {}
        for version, answer in answers.items():
            match answer.result():
                case KubeError() as error:
                    failed[version] = error
                case resources:
                    served += resources
        return Catalogue(resources=tuple(served), failed=failed)

    async def _try_group_version(self, api_version: str) -> tuple[ServedResource, ...] | KubeError:
        try:
            return await self._group_version(api_version)
        except NotFound:
            return ()  # its last CRD was deleted after the groups were listed
        except KubeError as error:
            return error

    async def _group_version(self, api_version: str) -> tuple[ServedResource, ...]:
        document = await self._fetch(group_version_path(api_version))
        others = sum(size for version, size in self._sizes.items() if version != api_version)
        if others + len(document) > _MOST_KEPT:
            raise ReplyTooLarge(
                f"{self._server} serves more kinds than discovery keeps ({_MOST_KEPT >> 20} MiB of documents)"
            )
        entries = self._decode(document, _ApiResourceList).resources or []
        subresources: dict[str, set[str]] = {}
        for entry in entries:
            plural, _, subresource = entry.name.partition("/")
            subresources.setdefault(plural, set()).add(subresource)
        self._sizes[api_version] = len(document)
        self._known[api_version] = tuple(
            ServedResource(
                resource=Resource.of(api_version, entry.name, kind=entry.kind, namespaced=entry.namespaced),
                verbs=frozenset(entry.verbs),
                subresources=frozenset(subresources[entry.name] - {""}),
            )
            for entry in entries
            if "/" not in entry.name
        )
        return self._known[api_version]

    def _decode(self, body: bytes, as_type: type[T]) -> T:
        try:
            return decode(body, as_type)
        except msgspec.DecodeError as error:
            raise BadReply(f"{self._server} answers discovery in a form that is not understood: {error}") from error


def _pick(served: tuple[ServedResource, ...], kind: str) -> Resource | None:
    return next((entry.resource for entry in served if entry.resource.kind == kind), None)
