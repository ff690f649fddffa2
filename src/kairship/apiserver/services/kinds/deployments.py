"""Deployments. All of it is pure."""

import datetime as dt
from typing import Any

from kairship.apiserver.services.objects import MIRROR
from kairship.apiserver.services.resources import Kind
from kairship.apiserver.services.resources.kind import Placed, Predicate
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import Deployment, DeploymentStatus
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.gen.kairship.types.v1alpha1.workload_pb import WorkloadState
from kairship.kube import Object, kinds
from kairship.rpc.errors import FailedPrecondition, InvalidArgument

_REVISION = "deployment.kubernetes.io/revision"
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


def deployment_view(obj: Object, placed: Placed) -> Deployment:
    shown = MIRROR.of(Deployment, obj)
    status = shown.status or DeploymentStatus()
    status.state = state_of(obj, replicas=placed.replicas)
    status.clusters = list(placed.clusters)
    shown.status = status
    revision = (obj.get("metadata", {}).get("annotations") or {}).get(_REVISION, "")
    shown.revision = int(revision) if revision.isdecimal() else 0
    return shown


def state_of(obj: Object, *, replicas: int = 0) -> WorkloadState:
    """As Karmada has summed it up. `replicas` are those of all clusters, if known: duplicated, they are more than the
    spec says."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if obj.get("metadata", {}).get("deletionTimestamp"):
        return WorkloadState.DELETING
    wanted, there = spec.get("replicas", 1), status.get("replicas", 0)
    if wanted == 0:
        return WorkloadState.STOPPED
    if there == 0:
        return WorkloadState.WAITING
    return (
        WorkloadState.RUNNING
        if status.get("readyReplicas", 0) >= max(wanted, there, replicas)
        else WorkloadState.NOT_READY
    )


def in_phase(request: Any) -> Predicate | None:
    """`phase` is a state by its name, with or without what all of them begin with."""
    asked = getattr(request, "phase", "")
    if not asked:
        return None
    name = asked.upper().removeprefix("WORKLOAD_STATE_")
    if name not in WorkloadState.__members__:
        known = ", ".join(state.name for state in WorkloadState if state)
        raise InvalidArgument(violations=[("phase", f"{asked[:60]!r} is none of {known}")])
    state = WorkloadState[name]
    return lambda obj: state_of(obj) is state


def pause(_: Object, __: dt.datetime) -> Object:
    return {"spec": {"paused": True}}


def resume(_: Object, __: dt.datetime) -> Object:
    return {"spec": {"paused": False}}


def restart(obj: Object, now: dt.datetime) -> Object:
    """As kubectl does it: another annotation of the pods makes other pods."""
    if obj.get("spec", {}).get("paused"):
        name = obj["metadata"]["name"]
        raise FailedPrecondition(f"Deployment {name} is paused, so a restart would do nothing: resume it first")
    return {"spec": {"template": {"metadata": {"annotations": {_RESTARTED: now.isoformat()}}}}}


DEPLOYMENTS = Kind(
    resource=kinds.DEPLOYMENTS,
    message=Deployment,
    plural="Deployments",
    view=deployment_view,
    is_placed=True,
    sort_keys={SortBy.state: lambda obj: state_of(obj).name},
    filters=(in_phase,),
    actions={"Pause": pause, "Resume": resume, "Restart": restart},
)
