"""The views of instances and their backups. Pure functions."""

from collections.abc import Mapping

from kairship.gen.kairship.instance.v1alpha1.instance_pb import (
    HostCluster,
    Instance,
    InstanceSpec,
    InstanceStatus,
    InstanceStatusSummary,
    NumStatistic,
    Progress,
    ResourceSummary,
)
from kairship.gen.kairship.instance.v1alpha1.lifecycle_pb import Backup
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.resources import Coverage, InstanceState, ReadyCount
from kairship.resources import instance_status as own
from kairship.rpc.resource_cache import SeenInstance
from kairship.rpc.views import conditions_view, metadata_view, unix_seconds


def instance_view(seen: SeenInstance) -> Instance:
    spec, status = seen.spec, seen.status
    host = HostCluster(name=spec.host_cluster.name) if spec.host_cluster else None
    return Instance(
        metadata=metadata_view(seen.metadata),
        spec=InstanceSpec(
            host_cluster=host,
            alias=spec.alias,
            description=spec.description,
            driver=str(spec.driver),
            version=spec.version or "",
            release_on_delete=spec.release_on_delete,
        ),
        status=InstanceStatus(
            karmada_version=status.karmada_version,
            kubernetes_version=status.kubernetes_version,
            state=state_of(seen),
            summary=_summary(status.summary) if status.summary else None,
            endpoint=status.endpoint,
            conditions=conditions_view(status.conditions),
            operation=_progress(status.operation) if status.operation else None,
        ),
    )


def restricted_view(seen: SeenInstance) -> Instance:
    """Shows a caller who may see only some namespaces of the instance no more than what is needed to find them."""
    return Instance(
        metadata=ObjectMeta(name=seen.metadata.name, uid=seen.metadata.uid),
        spec=InstanceSpec(alias=seen.spec.alias),
        status=InstanceStatus(state=state_of(seen)),
    )


def view_for(coverage: Coverage, seen: SeenInstance) -> Instance:
    whole = coverage.everywhere or seen.metadata.name in coverage.instances
    return instance_view(seen) if whole else restricted_view(seen)


def state_of(seen: SeenInstance) -> InstanceStatus.State:
    """Returns the state that status sync has written; before its first write, what follows from the object alone."""
    if seen.metadata.deletion_timestamp is not None:
        return InstanceStatus.State.INSTANCE_STATE_TERMINAL
    return InstanceStatus.State[f"INSTANCE_STATE_{seen.status.state or InstanceState.INPROCESS}"]


def backup_view(backup: own.Backup) -> Backup:
    return Backup(
        name=backup.name,
        phase=Backup.Phase[backup.phase.upper()],
        taken_at=unix_seconds(backup.taken_at),
        version=backup.version,
        size=backup.size_bytes,
        message=backup.message,
    )


def _summary(summary: own.Summary) -> InstanceStatusSummary:
    """Clusters that are not ready are counted too, and their nodes are counted as not ready."""
    nodes = ReadyCount(total=summary.current.nodes.total + summary.stale.nodes.total, ready=summary.current.nodes.ready)
    return InstanceStatusSummary(
        resource_total_num=_by_plural(summary.resources),
        policy_total_num=_by_plural(summary.policies),
        cluster_summary=NumStatistic(total_num=summary.clusters.total, ready_num=summary.clusters.ready),
        node_summary=_statistic(nodes),
        resource_summary=ResourceSummary(
            allocatable=dict(summary.current.allocatable), allocated=dict(summary.current.allocated)
        ),
        work_load_summary={_plural(kind): _statistic(count) for kind, count in summary.workloads.items()},
    )


def _by_plural(counts: Mapping[str, int]) -> dict[str, int]:
    return {_plural(kind): count for kind, count in counts.items()}


def _plural(kind: str) -> str:
    """Returns a kind as it is in the paths of the API: deployments, ingresses, propagationpolicies."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _statistic(count: ReadyCount) -> NumStatistic:
    return NumStatistic(total_num=count.total, ready_num=count.ready)


def _progress(progress: own.Progress) -> Progress:
    return Progress(
        operation=str(progress.operation),
        step=progress.step,
        position=progress.position,
        total=progress.total,
        message=progress.message,
    )
