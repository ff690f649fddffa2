"""The sum of what the nodes of a cluster use, if it serves the metrics API."""

from collections.abc import Mapping
from contextlib import aclosing
from decimal import Decimal

import msgspec

from kairship.kube import ApiError, BadReply, Client, Resource
from kairship.kube.quantities import add_up, as_quantities

NODE_METRICS = Resource.of("metrics.k8s.io/v1beta1", "nodes", kind="NodeMetrics", namespaced=False)


class _NodeUsage(msgspec.Struct):
    usage: dict[str, str] | None = None


async def sum_usage(client: Client, *, timeout: float) -> Mapping[str, str]:
    """The sums by resource name; empty if the cluster serves no metrics."""
    sums: dict[str, Decimal] = {}
    try:
        async with aclosing(client.typed(_NodeUsage).pages(NODE_METRICS, timeout=timeout)) as pages:
            async for page in pages:
                for node in page.items:
                    add_up(sums, node.usage or {})
    except (ApiError, BadReply):
        return {}
    return as_quantities(sums)
