"""The address ranges of a cluster, and the mode of its kube-proxy, as far as they can be found out.

No single API tells all of it. Newer clusters have a ServiceCIDR; clusters made by kubeadm keep their configuration in a
ConfigMap; the pod ranges follow from those of the nodes if the cluster assigns them.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from kairship.kube import ApiError, BadReply, Client, Resource, kinds

SERVICE_CIDRS = Resource.of("networking.k8s.io/v1", "servicecidrs", kind="ServiceCIDR", namespaced=False)
_SYSTEM = "kube-system"
_SUBNET = re.compile(r"^\s*(serviceSubnet|podSubnet):\s*[\"']?([0-9a-fA-F.:/,]{1,256})[\"']?\s*$", re.MULTILINE)
_MODE = re.compile(r"^mode:\s*[\"']?([A-Za-z]{1,32})[\"']?\s*$", re.MULTILINE)
_MOST_RANGES = 3


class Network(msgspec.Struct, frozen=True, kw_only=True):
    service_cidr: str = ""
    pod_cidr: str = ""
    proxy_mode: str = ""


class _Ranges(msgspec.Struct):
    cidrs: tuple[str, ...] = ()


class _ServiceCidr(msgspec.Struct):
    spec: _Ranges


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


async def network_of(client: Client, node_ranges: Iterable[str], *, timeout: float) -> Network:
    """Whatever the credential may not read is left empty."""
    subnets = dict(_SUBNET.findall(await _text(client, "kubeadm-config", "ClusterConfiguration", timeout)))
    mode = _MODE.search(await _text(client, "kube-proxy", "config.conf", timeout))
    return Network(
        service_cidr=await _service_ranges(client, timeout) or subnets.get("serviceSubnet", ""),
        pod_cidr=subnets.get("podSubnet", "") or common_ranges(node_ranges),
        proxy_mode=mode[1] if mode else "",
    )


def common_ranges(ranges: Iterable[str]) -> str:
    """The ranges of nodes, collapsed into a few; empty if they are too scattered for that."""
    networks: dict[int, list[Any]] = {4: [], 6: []}
    for text in ranges:
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            continue
        networks[network.version].append(network)
    found = [str(each) for version in (4, 6) for each in ipaddress.collapse_addresses(networks[version])]
    return ",".join(found) if len(found) <= _MOST_RANGES else ""


async def _service_ranges(client: Client, timeout: float) -> str:
    try:
        found = await client.typed(_ServiceCidr).get(SERVICE_CIDRS, "kubernetes", timeout=timeout)
    except (ApiError, BadReply):
        return ""
    return ",".join(found.spec.cidrs[:_MOST_RANGES])


async def _text(client: Client, name: str, key: str, timeout: float) -> str:
    try:
        found = await client.typed(_ConfigMap).get(kinds.CONFIGMAPS, name, namespace=_SYSTEM, timeout=timeout)
    except (ApiError, BadReply):
        return ""
    return (found.data or {}).get(key, "")
