"""Deployments: their view, their state, and the patches that pause, resume and restart them. Pure functions."""

import datetime as dt
from typing import Any

from kairship.apiserver.services.object_views import MIRROR
from kairship.apiserver.services.resources import Kind
from kairship.apiserver.services.resources.kind import Predicate, TargetClusters
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import Deployment, DeploymentStatus
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.gen.kairship.types.v1alpha1.workload_pb import WorkloadState
from kairship.kube import Object, kinds
from kairship.rpc.errors import FailedPrecondition, InvalidArgument

_REVISION = "deployment.kubernetes.io/revision"
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


def deployment_view(obj: Object, targets: TargetClusters) -> Deployment:
    shown = MIRROR.of(Deployment, obj)
    status = shown.status or DeploymentStatus()
    status.state = state_of(obj, replicas=targets.replicas)
    status.clusters = list(targets.clusters)
    shown.status = status
    revision = (obj.get("metadata", {}).get("annotations") or {}).get(_REVISION, "")
    shown.revision = int(revision) if revision.isdecimal() else 0
    return shown


def state_of(obj: Object, *, replicas: int = 0) -> WorkloadState:
    """Returns the state by the status that Karmada aggregates.

    `replicas` is the sum over all target clusters, 0 if it is not known. It is more than the spec says if the policy
    duplicates replicas to each cluster.
    """
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if obj.get("metadata", {}).get("deletionTimestamp"):
        return WorkloadState.DELETING
    wanted, existing = spec.get("replicas", 1), status.get("replicas", 0)
    if wanted == 0:
        return WorkloadState.STOPPED
    if existing == 0:
        return WorkloadState.WAITING
    return (
        WorkloadState.RUNNING
        if status.get("readyReplicas", 0) >= max(wanted, existing, replicas)
        else WorkloadState.NOT_READY
    )


def in_phase(request: Any) -> Predicate | None:
    """Selects Deployments by `phase`, the name of a state with or without the prefix of the enum."""
    phase = getattr(request, "phase", "")
    if not phase:
        return None
    name = phase.upper().removeprefix("WORKLOAD_STATE_")
    if name not in WorkloadState.__members__:
        known = ", ".join(state.name for state in WorkloadState if state)
        raise InvalidArgument(violations=[("phase", f"{phase[:60]!r} is none of {known}")])
    state = WorkloadState[name]
    return lambda obj: state_of(obj) is state


def pause(_: Object, __: dt.datetime) -> Object:
    return {"spec": {"paused": True}}


def resume(_: Object, __: dt.datetime) -> Object:
    return {"spec": {"paused": False}}


def restart(obj: Object, now: dt.datetime) -> Object:
    """Restarts as `kubectl rollout restart` does: a new annotation in the pod template makes new pods."""
    if obj.get("spec", {}).get("paused"):
        name = obj["metadata"]["name"]
        raise FailedPrecondition(f"Deployment {name} is paused, so a restart would do nothing: resume it first")
    return {"spec": {"template": {"metadata": {"annotations": {_RESTARTED: now.isoformat()}}}}}


DEPLOYMENTS = Kind(
    resource=kinds.DEPLOYMENTS,
    message=Deployment,
    view=deployment_view,
    shows_target_clusters=True,
    sort_keys={SortBy.state: lambda obj: state_of(obj).name},
    filters=(in_phase,),
)
