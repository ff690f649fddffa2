"""Pods in member clusters. Which of them belong to a workload is decided by owner references, never by names."""

from decimal import Decimal
from typing import Any

from kairship.apiserver.services.instance_clients import InstanceClients, MemberResource
from kairship.apiserver.services.object_views import MIRROR
from kairship.apiserver.services.resources import ObjectAccess, list_page
from kairship.apiserver.services.resources.kind import Predicate
from kairship.gen.kairship.core.v1alpha1.pod_pb import (
    ListPodsForMemberClusterRequest,
    ListPodsForMemberClusterResponse,
    Pod,
    PodStatus,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.kube import Client, Object, Resource, kinds
from kairship.kube.quantities import parse_quantity
from kairship.reconcile import MetadataOnly
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import InvalidArgument
from kairship.rpc.listing import Order

Kind = ListPodsForMemberClusterRequest.Kind

_WORKLOADS: dict[Kind, tuple[Resource, ...]] = {
    Kind.Deployment: (kinds.DEPLOYMENTS, kinds.REPLICA_SETS),
    Kind.StatefulSet: (kinds.STATEFUL_SETS,),
    Kind.DaemonSet: (kinds.DAEMON_SETS,),
    Kind.Job: (kinds.JOBS,),
    Kind.CronJob: (kinds.CRON_JOBS, kinds.JOBS),
}
"""The chain of owners from a workload down to its pods."""


async def list_pods_for_member_cluster(
    access: ObjectAccess, request: ListPodsForMemberClusterRequest, call: Call
) -> ListPodsForMemberClusterResponse:
    found, pagination = await list_page(
        access,
        request,
        call,
        kinds.PODS,
        _ORDER,
        [in_phase(request.phase), await _of_workload(access.clients, request, call)],
        cluster=request.cluster,
        name_contains=request.name,
        label_selector=request.label_selector or None,
        field_selector=request.field_selector or None,
    )
    items = [pod_view(obj, cluster=request.cluster) for obj in found]
    return ListPodsForMemberClusterResponse(items=items, pagination=pagination)


def pod_view(obj: Object, *, cluster: str) -> Pod:
    shown = MIRROR.of(Pod, obj)
    status = shown.status or PodStatus()
    containers = (obj.get("spec") or {}).get("containers") or []
    states = (obj.get("status") or {}).get("containerStatuses") or []
    status.container_total_count = len(containers)
    status.container_ready_count = sum(1 for each in states if each.get("ready"))
    status.restart_count = sum(int(each.get("restartCount", 0)) for each in states)
    status.cpu_request, status.cpu_limit = (_sum(containers, bound, "cpu", 1000) for bound in ("requests", "limits"))
    status.memory_request, status.memory_limit = (
        _sum(containers, bound, "memory", 1) for bound in ("requests", "limits")
    )
    status.owned_by = _owner(obj)
    shown.status = status
    shown.metadata = shown.metadata or ObjectMeta()
    shown.metadata.cluster = cluster
    return shown


_ORDER: Order[Object] = Order(
    name=lambda obj: (obj["metadata"]["name"], obj["metadata"].get("namespace", "")),
    created=lambda obj: str(obj["metadata"].get("creationTimestamp") or ""),
    keys={SortBy.state: lambda obj: str((obj.get("status") or {}).get("phase", ""))},
)


def in_phase(phase: str) -> Predicate | None:
    if not phase:
        return None
    name = phase.capitalize()
    known = [each.name for each in PodStatus.Phase if each]
    if name not in known:
        raise InvalidArgument(violations=[("phase", f"{phase[:60]!r} is none of {', '.join(known)}")])
    return lambda obj: (obj.get("status") or {}).get("phase") == name


async def _of_workload(
    clients: InstanceClients, request: ListPodsForMemberClusterRequest, call: Call
) -> Predicate | None:
    """Selects the pods of the workload that the request names; None if it names none.

    The entrance has authorised the caller to list pods only, so the workload is read as the caller.
    """
    if not request.kind_name:
        return None
    if request.kind is Kind.Service:
        return await clients.as_caller(
            request.instance, call, lambda client: _selected_by_service(client, request, call)
        )
    if request.kind not in _WORKLOADS:
        raise InvalidArgument(violations=[("kind", "kindName needs the kind of the workload")])
    return await clients.as_caller(request.instance, call, lambda client: _owned_by(client, request, call))


async def _owned_by(client: Client, request: ListPodsForMemberClusterRequest, call: Call) -> Predicate:
    first, *owned = _WORKLOADS[request.kind]
    workload = await client.typed(MetadataOnly).get(
        MemberResource.at(request.cluster, first),
        request.kind_name,
        namespace=request.namespace,
        timeout=patience(call),
    )
    owners = {workload.metadata.uid}
    for resource in owned:
        page = await client.typed(MetadataOnly).list(
            MemberResource.at(request.cluster, resource),
            namespace=request.namespace,
            timeout=patience(call),
        )
        owners = {
            each.metadata.uid
            for each in page.items
            if any(owner.uid in owners for owner in each.metadata.owner_references)
        }
    return lambda obj: any(owner.get("uid") in owners for owner in obj["metadata"].get("ownerReferences") or ())


async def _selected_by_service(client: Client, request: ListPodsForMemberClusterRequest, call: Call) -> Predicate:
    """A Service owns no pods: it selects them by labels."""
    service = await client.get(
        MemberResource.at(request.cluster, kinds.SERVICES),
        request.kind_name,
        namespace=request.namespace,
        timeout=patience(call),
    )
    wanted: dict[str, str] = (service.get("spec") or {}).get("selector") or {}
    return lambda obj: bool(wanted) and wanted.items() <= (obj["metadata"].get("labels") or {}).items()


def _sum(containers: list[dict[str, Any]], bound: str, resource: str, scale: int) -> int:
    amounts = [
        parse_quantity(str(((each.get("resources") or {}).get(bound) or {}).get(resource, ""))) for each in containers
    ]
    return int(sum((amount for amount in amounts if amount is not None), Decimal(0)) * scale)


def _owner(obj: Object) -> PodStatus.OwnedBy | None:
    owners = obj["metadata"].get("ownerReferences") or []
    owner = next((each for each in owners if each.get("controller")), None)
    if owner is None:
        return None
    kind = PodStatus.OwnedBy.Kind.__members__.get(str(owner.get("kind", "")).upper())
    return PodStatus.OwnedBy(kind=kind or PodStatus.OwnedBy.Kind.UNSPECIFIED, name=owner.get("name", ""))
