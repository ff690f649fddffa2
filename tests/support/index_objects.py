"""Objects as an API server would send them, and an index filled with some."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kairship.index import Index, Intake, Query, Scope, Writer, plan
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
    """As a list would."""
    intake = Intake(resource)
    await writer.begin(resource)
    await writer.put(resource, [intake.record(one) for one in bodies])
    await writer.end(resource, revision)
    await writer.hear()


async def keys(index: Index, *, cluster: str = "one", resource: Resource = kinds.CONFIGMAPS, **asked: Any) -> list[str]:
    """What a query finds, in its order; and that as many are counted."""
    kind = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    query = Query(**{"scopes": (Scope(cluster),), "kinds": frozenset((kind,)), **asked})
    found = [row.key for row in await index.page(plan(query))]
    if query.limit is None:
        assert await index.count(plan(query)) == len(found)
    return found
