"""Builds and applies the objects of a membership, in the instance and in the member."""

from typing import Any

from kairship.kube import Client

FIELD_MANAGER = "kairship-membership"

Manifest = dict[str, Any]


def manifest(api_version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


async def apply(client: Client, item: Manifest) -> Manifest:
    return await client.apply_object(item, field_manager=FIELD_MANAGER)
