"""The health of an adopted Karmada, as far as its API shows.

Components that serve an API are probed through it; the condition of an APIService would show the same half a minute
later. Components that elect a leader show by their lease that they are alive. The others, such as the webhook, have no
address that we know: they are left out, because anything that was said about them might be wrong.
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
"""The timeout of each probe. Probes run concurrently, so one component that hangs costs no more than this."""

# Components by API group: the names of their Services differ between the ways to install Karmada.
_SERVERS = {
    "cluster.karmada.io": AGGREGATED_APISERVER,
    "search.karmada.io": SEARCH,
    "metrics.k8s.io": METRICS_ADAPTER,
    "custom.metrics.k8s.io": METRICS_ADAPTER,
    "external.metrics.k8s.io": METRICS_ADAPTER,
}
# The API server labels its own API services, of which there are dozens.
_AGGREGATED_ONLY = "!kube-aggregator.kubernetes.io/automanaged"
# A lease has the name of its component, and is in the Karmada itself however it was installed.
_LEADERS = frozenset({"kube-controller-manager", CONTROLLER_MANAGER, SCHEDULER, DESCHEDULER})
# The tolerance beyond the duration of a lease, for clock skew and for a successor to take over.
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
    """Returns the health of each component. A fault of the Karmada is a result and never raised."""
    try:
        seen = [_health(API_SERVER, await _objection(client, "/readyz"))]
    except KubeError as error:
        return [ComponentHealth(API_SERVER, healthy=False, reason=str(error))]
    try:
        seen.append(_health(ETCD, await _objection(client, "/readyz/etcd")))
        seen += await _servers(client)
        seen += await _leaders(client)
    except KubeError:
        pass  # components that could not be probed are left out
    return seen


async def _servers(client: Client) -> Iterable[ComponentHealth]:
    """Returns the health of each aggregated API server, which is that of the worst of its APIs."""
    services = (
        await client.typed(_ApiService).list(kinds.API_SERVICES, label_selector=_AGGREGATED_ONLY, timeout=PATIENCE)
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
    # By the API server's clock, because it is nearer to the components' clocks than ours.
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
    """Returns what the server reports as failed, or an empty string. Raises if the server does not answer."""
    reply = await client.request("GET", path, timeout=PATIENCE)
    if reply.status == 200:
        return ""
    lines = reply.body.decode(errors="replace").splitlines()
    failed = [line.removeprefix("[-]") for line in lines if line.startswith("[-]")] or lines[:1]
    return f"{path} answers {reply.status}: {'; '.join(failed)[:500]}"


def _health(component: str, objection: str) -> ComponentHealth:
    return ComponentHealth(component, healthy=not objection, reason=objection)
