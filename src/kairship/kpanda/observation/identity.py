"""Which cluster it is: the UID of its namespace kube-system, which it keeps for life."""

import re

from kairship.kube import BadReply, Client, kinds
from kairship.reconcile import MetadataOnly

_UID = re.compile(r"[A-Za-z0-9-]{8,64}")


async def identity_of(client: Client, *, timeout: float) -> str:
    found = await client.get(kinds.NAMESPACES, "kube-system", as_type=MetadataOnly, timeout=timeout)
    uid = found.metadata.uid
    if not _UID.fullmatch(uid):
        raise BadReply(f"{client.connection.server} says nothing of its namespace kube-system that could be a UID")
    return uid
