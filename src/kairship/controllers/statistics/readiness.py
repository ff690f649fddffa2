"""When a workload counts as ready, for each kind. Pure functions.

The status of a workload is the one that Karmada aggregates from the members.
"""

from collections.abc import Callable, Mapping

import msgspec

from kairship.kube import kinds
from kairship.reconcile import Metadata


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Spec(msgspec.Struct, frozen=True):
    replicas: int | None = None
    suspend: bool | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0
    number_ready: int = 0
    desired_number_scheduled: int | None = None
    conditions: tuple[_Condition, ...] | None = None


class Workload(msgspec.Struct, frozen=True):
    """The fields of any workload that decide whether it is ready."""

    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


def _replicas(workload: Workload) -> bool:
    wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
    return workload.status.ready_replicas >= wanted


def _daemons(workload: Workload) -> bool:
    wanted = workload.status.desired_number_scheduled
    return wanted is not None and workload.status.number_ready >= wanted


def _complete(workload: Workload) -> bool:
    return any(each.type == "Complete" and each.status == "True" for each in workload.status.conditions or ())


def _runs(workload: Workload) -> bool:
    return not workload.spec.suspend


READY: Mapping[str, Callable[[Workload], bool]] = {
    kinds.DEPLOYMENTS.kind: _replicas,
    kinds.STATEFUL_SETS.kind: _replicas,
    kinds.DAEMON_SETS.kind: _daemons,
    kinds.JOBS.kind: _complete,
    kinds.CRON_JOBS.kind: _runs,
}
