"""Reads from the index besides lists: searches, changes in all clusters, and the history of clusters and instances."""

from typing import Any

from support import entrance
from support.golden import exchanges
from support.manifests import deployment

from kairship.kube import Client, kinds

VARYING = frozenset({"ageMilliseconds", "gaps"})
FIGURES = frozenset({"points", "since", "until", "stepSeconds"})


async def test_search_and_history(client: entrance.Client, demo: Client, own: str, namespace: str) -> None:
    await demo.create(kinds.DEPLOYMENTS, deployment(f"web-{own}"), namespace=namespace)

    def found(reply: dict[str, Any]) -> bool:
        return bool(reply["items"])

    def measured(reply: dict[str, Any]) -> bool:
        return any(series["points"] for series in reply["series"])

    where = {"cluster": "frankfurt", "instance": "demo"}
    async with exchanges(client, "Search", "History", variables=where, names={"own": own}) as exchange:
        words = {"query": f"web-{own} nginx", "instance": "demo", "kind": "deployments.apps", "count": "true"}
        await exchange("Search.SearchObjects", query=words, when=found, varying=VARYING)
        await exchange("Search.WatchObjects", query={"kind": "deployments.apps", "instance": "demo"})
        await exchange("History.GetClusterHistory", when=measured, varying=FIGURES)
        await exchange("History.GetInstanceHistory", when=measured, varying=FIGURES)
