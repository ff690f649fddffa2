"""Objects of API servers, told apart by what a comparison needs of them."""

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
    """In words; nothing if they are the same."""
    here, there = set(found), set(expected)
    said = [f"{what}: too much: {sorted(here - there)}"] if here - there else []
    return [*said, f"{what}: missing: {sorted(there - here)}"] if there - here else said
