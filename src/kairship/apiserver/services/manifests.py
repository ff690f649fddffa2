"""Manifests that callers send as JSON or YAML, checked against the request that they came with.

Parsing YAML of unknown origin takes a while, so it happens in a thread. The kind, name and namespace in a manifest must
be those of the request: otherwise the object would end up elsewhere than its author wrote.
"""

import asyncio
from typing import Any

from kairship.kube import ConfigError, Object, Resource
from kairship.kube.documents import load_documents
from kairship.rpc.errors import InvalidArgument

_MAX_SIZE = 3 * 1024 * 1024  # the limit of API servers
_MAX_NODES = 150_000


async def read_manifest(
    text: str, resource: Resource, *, name: str | None = None, namespace: str | None = None
) -> Object:
    """Returns a whole object of this kind, with the name and namespace of the request. Raises `InvalidArgument`."""
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
    """Returns some fields of an object, as for a merge patch. Raises `InvalidArgument`."""
    found = await asyncio.to_thread(_parse, text)
    if wrong := list(_contradictions(found, resource, name, namespace)):
        raise InvalidArgument(violations=wrong)
    return found


def _parse(text: str) -> Object:
    try:
        documents = load_documents(text, called="it", max_size=_MAX_SIZE, max_parts=_MAX_NODES)
    except ConfigError as error:
        raise InvalidArgument(violations=[("data", str(error))]) from None
    documents = [document for document in documents if document is not None]
    if len(documents) != 1:
        raise InvalidArgument(violations=[("data", f"must be one object, but has {len(documents)}")])
    if not isinstance(documents[0], dict):
        raise InvalidArgument(violations=[("data", "must be a Kubernetes object, as JSON or YAML")])
    return documents[0]


def _contradictions(found: Object, resource: Resource, name: str | None, namespace: str | None) -> Any:
    metadata = found.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        yield "data.metadata", "must be an object"
        return
    given = metadata or {}
    expected = {
        "apiVersion": (found.get("apiVersion"), resource.api_version),
        "kind": (found.get("kind"), resource.kind),
        "metadata.name": (given.get("name"), name),
        "metadata.namespace": (given.get("namespace"), namespace if resource.namespaced else ""),
    }
    for field, (value, wanted) in expected.items():
        if value and wanted is not None and value != wanted:
            expectation = f"must be {wanted}, as the request says" if wanted else "this kind has no namespace"
            yield f"data.{field}", f"is {str(value)[:100]!r} and {expectation}"
