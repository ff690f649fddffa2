"""The identity of a cluster under every name, address and credential: the UID of its namespace kube-system.

A cluster keeps that namespace for life. A control plane of Karmada has such an identity too, but is no cluster.
"""

import re

import msgspec

from kairship.kube import kinds
from kairship.kube.client import Client
from kairship.kube.errors import BadReply, UnknownKind

_UID = re.compile(r"[A-Za-z0-9-]{8,64}")


class _Metadata(msgspec.Struct, frozen=True):
    uid: str


class _Namespace(msgspec.Struct, frozen=True):
    metadata: _Metadata


async def cluster_identity(client: Client, *, timeout: float | None = None) -> str:
    """Raises `BadReply` if the server returns anything else than a UID."""
    found = await client.typed(_Namespace).get(kinds.NAMESPACES, "kube-system", timeout=timeout)
    if not _UID.fullmatch(found.metadata.uid):
        raise BadReply(f"{client.connection.server} does not return a valid UID of its namespace kube-system")
    return found.metadata.uid


async def is_karmada(client: Client) -> bool:
    """Whether the server is a control plane of Karmada: it serves the clusters of one."""
    try:
        await client.discovery.find(kinds.CLUSTERS.api_version, kinds.CLUSTERS.kind)
    except UnknownKind:
        return False
    return True
