"""The parts of objects that comparisons need, and the comparison of two sets in words."""

from collections.abc import Iterable
from typing import Any

from kairship.kube import Client, Object, Resource


async def names_of(client: Client, kind: Resource, **where: Any) -> list[str]:
    return [name_of(item) for item in (await client.list(kind, **where)).items]


def name_of(item: Object) -> str:
    return str(item["metadata"]["name"])


def labels_of(item: Object) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def conditions_of(item: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in item.get("status", {}).get("conditions", ())}


def differ(what: str, found: Iterable[Any], expected: Iterable[Any]) -> list[str]:
    """Returns the differences in words."""
    extra, missing = set(found) - set(expected), set(expected) - set(found)
    differences = [f"{what}: too much: {sorted(extra)}"] if extra else []
    return [*differences, f"{what}: missing: {sorted(missing)}"] if missing else differences
