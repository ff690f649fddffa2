"""Objects in the form in which an API server sends them, and helpers that write them to an index and query it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kairship.index import Index, Query, RecordBuilder, VisibleScope, Writer, plan
from kairship.kube import Resource, kinds

CREATED = 1_700_000_000


def body(
    name: str,
    *,
    namespace: str = "default",
    revision: int = 1,
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    owner: str = "",
    **content: Any,
) -> bytes:
    metadata: dict[str, Any] = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": uid or f"uid-{namespace}-{name}",
        "resourceVersion": str(revision),
        "creationTimestamp": "2023-11-14T22:13:20Z",
    }
    if labels:
        metadata["labels"] = dict(labels)
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "name": "x", "kind": "X", "apiVersion": "v1"}]
    return msgspec.json.encode({"metadata": metadata, **content})


async def fill(writer: Writer, resource: Resource, *bodies: bytes, revision: int = 100) -> None:
    """Writes objects as the list of a follower does."""
    builder = RecordBuilder(resource)
    await writer.begin(resource)
    await writer.put(resource, [builder.record(one) for one in bodies])
    await writer.end(resource, revision)
    await writer.heartbeat()


async def keys(index: Index, *, cluster: str = "one", resource: Resource = kinds.CONFIGMAPS, **asked: Any) -> list[str]:
    """Returns the keys that a query finds, in its order. Asserts that the count is the same."""
    kind = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    query = Query(**{"scopes": (VisibleScope(cluster),), "kinds": frozenset((kind,)), **asked})
    found = [row.key for row in await index.page(plan(query))]
    if query.limit is None:
        assert await index.count(plan(query)) == len(found)
    return found
