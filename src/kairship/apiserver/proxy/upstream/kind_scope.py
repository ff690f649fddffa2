"""Whether a kind has no namespaces, as the discovery of the cluster itself says."""

import msgspec

from kairship.apiserver.proxy.request.request_info import ResourceRequest
from kairship.apiserver.proxy.request.target import Target
from kairship.kube import Client, KubeError
from kairship.kube.resource import group_version_path

_TIMEOUT = 5.0


class _Served(msgspec.Struct):
    name: str
    namespaced: bool = True


class _ServedList(msgspec.Struct):
    resources: list[_Served] = []


async def is_cluster_scoped(client: Client, target: Target, request_info: ResourceRequest) -> bool:
    """`client` is the instance's client, as the caller. False unless the cluster says so."""
    attributes = request_info.attributes
    group_version = f"{attributes.group}/{request_info.version}" if attributes.group else request_info.version
    document = msgspec.structs.replace(target, path=group_version_path(group_version))
    try:
        reply = await client.request(
            "GET", document.upstream_path, headers={"Accept": "application/json"}, timeout=_TIMEOUT
        )
        served = msgspec.json.decode(reply.body, type=_ServedList).resources if reply.status == 200 else []
    except (KubeError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return any(each.name == attributes.resource and not each.namespaced for each in served)
