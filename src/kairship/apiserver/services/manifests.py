"""Objects that callers send as text, JSON or YAML, checked against what the request says of them.

Reading YAML of unknown origin takes a while, so it happens in a thread. What a manifest says of itself must be what the
request says: an object that ends up elsewhere than its author wrote would be found by nobody.
"""

import asyncio
from typing import Any

from kairship.kube import ConfigError, Object, Resource
from kairship.kube.documents import load_documents
from kairship.rpc.errors import InvalidArgument

_MAX_SIZE = 3 * 1024 * 1024  # what an API server takes
_MAX_PARTS = 150_000


async def read_manifest(
    text: str, resource: Resource, *, name: str | None = None, namespace: str | None = None
) -> Object:
    """One whole object of this kind, with the name and namespace of the request. Raises `InvalidArgument`."""
    found = await read_fields(text, resource, name=name, namespace=namespace)
    wrong = [
        (f"data.{field}", f"must be {wanted}")
        for field, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind))
        if not found.get(field)
    ]
    metadata = found.setdefault("metadata", {})
    if name is not None:
        metadata["name"] = name
    if not metadata.get("name"):
        wrong.append(("data.metadata.name", "the object needs a name"))
    if wrong:
        raise InvalidArgument(violations=wrong)
    if resource.namespaced:
        metadata["namespace"] = namespace
    return found


async def read_fields(
    text: str, resource: Resource, *, name: str | None = None, namespace: str | None = None
) -> Object:
    """Some fields of an object, as for a merge patch. Raises `InvalidArgument`."""
    found = await asyncio.to_thread(_parse, text)
    if wrong := list(_contradictions(found, resource, name, namespace)):
        raise InvalidArgument(violations=wrong)
    return found


def _parse(text: str) -> Object:
    try:
        documents = load_documents(text, called="it", max_size=_MAX_SIZE, max_parts=_MAX_PARTS)
    except ConfigError as error:
        raise InvalidArgument(violations=[("data", str(error))]) from None
    documents = [document for document in documents if document is not None]
    if len(documents) != 1:
        raise InvalidArgument(violations=[("data", f"it must be one object, and has {len(documents)}")])
    if not isinstance(documents[0], dict):
        raise InvalidArgument(violations=[("data", "it must be an object of Kubernetes, as JSON or YAML")])
    return documents[0]


def _contradictions(found: Object, resource: Resource, name: str | None, namespace: str | None) -> Any:
    metadata = found.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        yield "data.metadata", "must be an object"
        return
    said = metadata or {}
    expected = {
        "apiVersion": (found.get("apiVersion"), resource.api_version),
        "kind": (found.get("kind"), resource.kind),
        "metadata.name": (said.get("name"), name),
        "metadata.namespace": (said.get("namespace"), namespace if resource.namespaced else ""),
    }
    for field, (value, wanted) in expected.items():
        if value and wanted is not None and value != wanted:
            told = f"must be {wanted}, as the request says" if wanted else "this kind has no namespace"
            yield f"data.{field}", f"is {str(value)[:100]!r} and {told}"
