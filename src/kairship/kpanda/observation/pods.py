"""The sum of what the pods of a cluster request, counted as the scheduler does, with init containers and overhead."""

from collections.abc import Mapping
from contextlib import aclosing
from decimal import Decimal

import msgspec

from kairship.kube import Client, kinds
from kairship.kube.quantities import add_up, as_quantities, parse_quantity

_PAGE = 500
# Pods that have ended hold no resources.
_SCHEDULED = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


class _Resources(msgspec.Struct):
    requests: dict[str, str] | None = None


class _Container(msgspec.Struct, rename="camel"):
    resources: _Resources = msgspec.field(default_factory=_Resources)
    restart_policy: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    overhead: dict[str, str] | None = None


class PodShape(msgspec.Struct):
    spec: _Spec


async def sum_requests(client: Client, *, timeout: float) -> Mapping[str, str]:
    """The sums by resource name; `pods` is the number of pods. `timeout` is for each page."""
    sums: dict[str, Decimal] = {"pods": Decimal(0)}
    pages = client.typed(PodShape).pages(kinds.PODS, field_selector=_SCHEDULED, limit=_PAGE, timeout=timeout)
    async with aclosing(pages):
        async for page in pages:
            for pod in page.items:
                sums["pods"] += 1
                for name, amount in requests_of(pod).items():
                    sums[name] = sums.get(name, Decimal(0)) + amount
    return as_quantities(sums)


def requests_of(pod: PodShape) -> Mapping[str, Decimal]:
    """The sum over the containers that run at the same time, or the peak of the init containers, whichever is more."""
    running: dict[str, Decimal] = {}
    for container in pod.spec.containers or ():
        add_up(running, container.resources.requests or {})
    sidecars: dict[str, Decimal] = {}
    peak: dict[str, Decimal] = {}
    for container in pod.spec.init_containers or ():
        if container.restart_policy == "Always":  # a sidecar, which keeps running
            add_up(sidecars, container.resources.requests or {})
            needed = dict(sidecars)
        else:
            needed = dict(sidecars)
            add_up(needed, container.resources.requests or {})
        for name, amount in needed.items():
            peak[name] = max(peak.get(name, Decimal(0)), amount)
    for name, amount in sidecars.items():
        running[name] = running.get(name, Decimal(0)) + amount
    total = {name: max(running.get(name, Decimal(0)), peak.get(name, Decimal(0))) for name in {*running, *peak}}
    for name, text in (pod.spec.overhead or {}).items():
        total[name] = total.get(name, Decimal(0)) + (parse_quantity(text) or Decimal(0))
    return total
