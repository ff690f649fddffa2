"""The views of clusters: of registered clusters and of members. Pure functions."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from kairship.apiserver.services.cluster.members import Member
from kairship.apiserver.services.cluster_providers import provider_of
from kairship.apiserver.services.object_views import MIRROR
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import (
    Cluster,
    ClusterPhase,
    ClusterResourceSummary,
    ClusterSpec,
    ClusterStatus,
    LocalSecretReference,
)
from kairship.gen.kairship.types.v1alpha1.metadata_pb import Condition, ObjectMeta
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.kube.quantities import parse_quantity
from kairship.resources import MembershipPhase
from kairship.resources.cluster import ClusterResources
from kairship.rpc.resource_cache import SeenCluster
from kairship.rpc.views import conditions_view, metadata_view

_BY_READINESS = {"True": ClusterPhase.RUNNING, "False": ClusterPhase.FAILED}
_NOT_REACHABLE = "ClusterNotReachable"  # a reason of Karmada


def registered_view(seen: SeenCluster, *, instance: str = "", refusal: str = "") -> Cluster:
    spec, status = seen.spec, seen.status
    return Cluster(
        metadata=metadata_view(seen.metadata),
        spec=ClusterSpec(
            provider=provider_of(spec.provider or status.provider),
            api_endpoint=status.endpoint or spec.endpoint or "",
            region=spec.region,
            zone=",".join(spec.zones),
            roles=list(spec.roles),
            managed_by=spec.managed_by,
            alias_name=spec.alias,
            secret_ref=LocalSecretReference(
                name=spec.credentials.name,
                namespace="kairship-system",
                resource_version=status.credentials.resource_version if status.credentials else "",
            ),
            taints=_registered_taints(seen),
        ),
        status=ClusterStatus(
            kubernetes_version=status.kubernetes_version,
            kube_system_id=status.id or "",
            service_cidr=status.service_cidr,
            pod_cidr=status.pod_cidr,
            proxy_mode=status.proxy_mode,
            phase=registered_phase(seen),
            cpu_usage=_usage(status.resources, "cpu"),
            memory_usage=_usage(status.resources, "memory"),
            resource_summary=_registered_resources(status.resources),
            instance=instance,
            join_refusal=refusal,
            conditions=conditions_view(status.conditions),
        ),
    )


def registered_phase(seen: SeenCluster) -> ClusterPhase:
    if seen.metadata.deletion_timestamp is not None:
        return ClusterPhase.DELETING
    return ClusterPhase[str(seen.status.phase or "CREATING")]


def member_view(member: Member) -> Cluster:
    """Shows what container management knows of the member, overlaid by what Karmada finds out itself."""
    if member.registered is not None and member.membership is not None:
        shown = registered_view(member.registered, instance=member.instance)
    else:
        shown = Cluster(metadata=ObjectMeta(name=member.name), spec=ClusterSpec(), status=ClusterStatus())
    spec, status = shown.spec or ClusterSpec(), shown.status or ClusterStatus()
    status.instance, status.phase = member.instance, member_phase(member)
    if member.membership is not None:
        status.conditions = conditions_view(member.membership.status.conditions)
    if member.karmada is not None:
        shown.metadata = _metadata(member, shown.metadata)
        _add_spec(spec, member)
        _add_status(status, member.karmada)
    shown.spec, shown.status = spec, status
    return shown


def member_phase(member: Member) -> ClusterPhase:
    karmada, membership = member.karmada, member.membership
    if membership is not None and membership.metadata.deletion_timestamp is not None:
        return ClusterPhase.DELETING
    if karmada is None:
        failed = membership is not None and membership.status.phase is MembershipPhase.FAILED
        return ClusterPhase.FAILED if failed else ClusterPhase.CREATING
    if karmada["metadata"].get("deletionTimestamp"):
        return ClusterPhase.DELETING
    ready = next((each for each in _conditions(karmada) if each.get("type") == "Ready"), None)
    if ready is None:
        return ClusterPhase.CREATING
    if ready.get("reason") == _NOT_REACHABLE:
        return ClusterPhase.UNKNOWN
    return _BY_READINESS.get(str(ready.get("status")), ClusterPhase.UNKNOWN)


def zones_of(karmada: dict[str, Any]) -> list[str]:
    spec = karmada.get("spec", {})
    return list(spec.get("zones") or ([spec["zone"]] if spec.get("zone") else []))


def _metadata(member: Member, registered: ObjectMeta | None) -> ObjectMeta:
    metadata = MIRROR.of(ObjectMeta, (member.karmada or {}).get("metadata"))
    if member.is_managed and registered is not None:
        metadata.labels = registered.labels
    return metadata


def _add_spec(spec: ClusterSpec, member: Member) -> None:
    karmada: dict[str, Any] = (member.karmada or {}).get("spec", {})
    spec.api_endpoint = karmada.get("apiEndpoint", "")
    spec.secret_ref = MIRROR.of(LocalSecretReference, karmada.get("secretRef"))
    spec.provider = spec.provider or provider_of(karmada.get("provider", ""))
    spec.region = spec.region or karmada.get("region", "")
    spec.zone = spec.zone or ",".join(zones_of(member.karmada or {}))
    found = [MIRROR.of(Taint, taint) for taint in karmada.get("taints") or []]
    if member.is_managed:
        own = {(taint.key, taint.effect) for taint in spec.taints}
        found = [
            *spec.taints,
            *(each for each in found if is_set_by_karmada(each) and (each.key, each.effect) not in own),
        ]
    spec.taints = found


def _add_status(status: ClusterStatus, karmada: dict[str, Any]) -> None:
    found = karmada.get("status") or {}
    status.kubernetes_version = found.get("kubernetesVersion", "")
    status.kube_system_id = karmada.get("spec", {}).get("id", "")
    if found.get("resourceSummary"):
        status.resource_summary = MIRROR.of(ClusterResourceSummary, found["resourceSummary"])
    shown = {condition.type for condition in status.conditions}
    status.conditions = [
        *status.conditions,
        *(MIRROR.of(Condition, each) for each in _conditions(karmada) if each.get("type") not in shown),
    ]


def is_set_by_karmada(taint: Taint) -> bool:
    """Whether Karmada itself sets and removes the taint, according to the health of the cluster."""
    return taint.key.startswith("cluster.karmada.io/")


def _conditions(karmada: dict[str, Any]) -> Iterable[dict[str, Any]]:
    return (karmada.get("status") or {}).get("conditions") or ()


def _registered_taints(seen: SeenCluster) -> list[Taint]:
    return [Taint(key=each.key, value=each.value, effect=TaintEffect[str(each.effect)]) for each in seen.spec.taints]


def _registered_resources(resources: ClusterResources | None) -> ClusterResourceSummary | None:
    if resources is None:
        return None
    return ClusterResourceSummary(allocatable=dict(resources.allocatable), allocated=dict(resources.allocated))


def _usage(resources: ClusterResources | None, name: str) -> float:
    """Returns how many per cent of the allocatable amount are in use; 0 if that is not known."""
    if resources is None:
        return 0.0
    used = parse_quantity(resources.used.get(name, "")) or Decimal(0)
    whole = parse_quantity(resources.allocatable.get(name, "")) or Decimal(0)
    return float(100 * used / whole) if whole else 0.0
