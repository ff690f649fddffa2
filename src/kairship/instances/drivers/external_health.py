"""How an adopted Karmada is doing, as far as its API shows.

Components that serve an API are asked through it; the condition of an APIService would tell the same half a minute
later. Those that elect a leader show by their lease that they are alive. The rest, such as the webhook, has no address
that we know: nothing is said of it, rather than something that may be wrong.
"""

import asyncio
import datetime as dt
from collections.abc import Iterable, Sequence
from email.utils import parsedate_to_datetime

import msgspec

from kairship.controlplane.karmada import (
    AGGREGATED_APISERVER,
    CONTROLLER_MANAGER,
    DESCHEDULER,
    METRICS_ADAPTER,
    SCHEDULER,
    SEARCH,
)
from kairship.instances.drivers.driver import ComponentHealth
from kairship.kube import Client, KubeError, kinds

API_SERVER = "kube-apiserver"
ETCD = "etcd"

PATIENCE = 3.0
"""For each question. They are asked side by side, so one component that hangs costs not more than this."""

# By API group: the Services behind them have another name in every way to install Karmada.
_SERVERS = {
    "cluster.karmada.io": AGGREGATED_APISERVER,
    "search.karmada.io": SEARCH,
    "metrics.k8s.io": METRICS_ADAPTER,
    "custom.metrics.k8s.io": METRICS_ADAPTER,
    "external.metrics.k8s.io": METRICS_ADAPTER,
}
# The API server registers its own, of which there are dozens, with this label.
_BEHIND_SERVERS = "!kube-aggregator.kubernetes.io/automanaged"
# Their leases have their own names, and are in the Karmada itself however it was installed.
_LEADERS = frozenset({"kube-controller-manager", CONTROLLER_MANAGER, SCHEDULER, DESCHEDULER})
# Beyond the duration of a lease: for the clocks of two machines, and for a successor to take over.
_LENIENCE = dt.timedelta(seconds=10)


class _ApiServiceSpec(msgspec.Struct):
    group: str = ""
    version: str = ""


class _ApiService(msgspec.Struct):
    spec: _ApiServiceSpec


class _Named(msgspec.Struct):
    name: str


class _LeaseSpec(msgspec.Struct, rename="camel"):
    renew_time: dt.datetime | None = None
    lease_duration_seconds: int = 15


class _Lease(msgspec.Struct):
    metadata: _Named
    spec: _LeaseSpec


class _Leases(msgspec.Struct):
    items: list[_Lease] | None  # Go writes an empty list as null


async def observe(client: Client) -> Sequence[ComponentHealth]:
    """Never raises for what is wrong with the Karmada: that is the answer."""
    try:
        seen = [_health(API_SERVER, await _objection(client, "/readyz"))]
    except KubeError as error:
        return [ComponentHealth(API_SERVER, healthy=False, reason=str(error))]
    try:
        seen.append(_health(ETCD, await _objection(client, "/readyz/etcd")))
        seen += await _servers(client)
        seen += await _leaders(client)
    except KubeError:
        pass  # what could not be asked is not spoken of
    return seen


async def _servers(client: Client) -> Iterable[ComponentHealth]:
    """One for each server that a registered API leads to; it is as well as the worst of its APIs."""
    services = (
        await client.list(kinds.API_SERVICES, label_selector=_BEHIND_SERVERS, as_type=_ApiService, timeout=PATIENCE)
    ).items
    known = [service.spec for service in services if service.spec.group in _SERVERS]
    objections = await asyncio.gather(*(_served(client, f"/apis/{spec.group}/{spec.version}") for spec in known))
    by_server: dict[str, list[str]] = {}
    for spec, objection in zip(known, objections, strict=True):
        by_server.setdefault(_SERVERS[spec.group], []).extend([objection] if objection else [])
    return [_health(server, "; ".join(its)) for server, its in by_server.items()]


async def _served(client: Client, path: str) -> str:
    try:
        return await _objection(client, path)
    except KubeError as error:
        return str(error)


async def _leaders(client: Client) -> Iterable[ComponentHealth]:
    reply = await client.request("GET", kinds.LEASES.path(), timeout=PATIENCE)
    if reply.status != 200:
        return []
    # The API server's clock, because it is nearer to the components than ours.
    now = parsedate_to_datetime(reply.headers["Date"])
    leases = msgspec.json.decode(reply.body, type=_Leases).items or []
    return [_alive(lease, now) for lease in leases if lease.metadata.name in _LEADERS]


def _alive(lease: _Lease, now: dt.datetime) -> ComponentHealth:
    renewed = lease.spec.renew_time
    if renewed is None:
        return _health(lease.metadata.name, "its lease has never been renewed")
    silent = now - renewed
    if silent <= dt.timedelta(seconds=lease.spec.lease_duration_seconds) + _LENIENCE:
        return _health(lease.metadata.name, "")
    return _health(lease.metadata.name, f"it has not renewed its lease for {silent.total_seconds():.0f} s")


async def _objection(client: Client, path: str) -> str:
    """Nothing, or what the server has to say against itself. Raises when it says nothing at all."""
    reply = await client.request("GET", path, timeout=PATIENCE)
    if reply.status == 200:
        return ""
    lines = reply.body.decode(errors="replace").splitlines()
    failed = [line.removeprefix("[-]") for line in lines if line.startswith("[-]")] or lines[:1]
    return f"{path} answers {reply.status}: {'; '.join(failed)[:500]}"


def _health(component: str, objection: str) -> ComponentHealth:
    return ComponentHealth(component, healthy=not objection, reason=objection)
