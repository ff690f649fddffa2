"""The identity of a cluster under every name, address and credential: the UID of its namespace kube-system.

A cluster keeps that namespace for life.
"""

import re

import msgspec

from kairship.kube import kinds
from kairship.kube.client import Client
from kairship.kube.errors import BadReply

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
