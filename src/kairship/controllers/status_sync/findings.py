"""Translates an observation of an instance into conditions and a state. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence

from kairship.controllers.status_sync.probe import Member, NotObserved, Observation
from kairship.controlplane import karmada
from kairship.instances.drivers import ComponentHealth
from kairship.instances.pool.health import Health, Reason
from kairship.resources import (
    Condition,
    Finding,
    InstanceCondition,
    InstanceReason,
    InstanceSpec,
    InstanceState,
    find_condition,
)

_C, _R = InstanceCondition, InstanceReason

COMPONENTS: Mapping[str, InstanceCondition] = {
    "etcd": _C.ETCD_HEALTHY,
    "kube-apiserver": _C.API_SERVER_HEALTHY,
    "kube-controller-manager": _C.KUBE_CONTROLLER_MANAGER_HEALTHY,
    karmada.AGGREGATED_APISERVER: _C.AGGREGATED_API_SERVER_HEALTHY,
    karmada.CONTROLLER_MANAGER: _C.CONTROLLER_MANAGER_HEALTHY,
    karmada.SCHEDULER: _C.SCHEDULER_HEALTHY,
    karmada.WEBHOOK: _C.WEBHOOK_HEALTHY,
    karmada.SEARCH: _C.SEARCH_HEALTHY,
    karmada.METRICS_ADAPTER: _C.METRICS_ADAPTER_HEALTHY,
    karmada.DESCHEDULER: _C.DESCHEDULER_HEALTHY,
}

_REACHABLE_REASONS = {
    Reason.ANSWERS: _R.ANSWERS,
    Reason.TIMED_OUT: _R.TIMED_OUT,
    Reason.CERTIFICATE_REJECTED: _R.CERTIFICATE_REJECTED,
    Reason.CREDENTIAL_REJECTED: _R.CREDENTIAL_REJECTED,
    Reason.KUBECONFIG_REFUSED: _R.CREDENTIAL_REJECTED,
    Reason.NO_CREDENTIALS: _R.NOT_CREATED,
}
_TOO_EARLY = frozenset({Reason.CONNECTING, Reason.NOT_READ_YET})
_NAMED = 10


def findings(seen: Observation, spec: InstanceSpec, *, shows_all: bool) -> list[Finding]:
    """One finding for each condition. With `shows_all`, a component that the driver does not report does not run."""
    return [
        _reachable(seen.health),
        *_components(seen.components, spec, shows_all=shows_all),
        _members(seen.members),
    ]


def readiness(conditions: Iterable[Condition], *, deleting: bool) -> Finding:
    """The condition Ready, which summarises all other conditions."""
    conditions = tuple(conditions)
    if deleting:
        return Finding(_C.READY, "False", _R.BEING_DELETED)
    created, reachable = find_condition(conditions, _C.CREATED), find_condition(conditions, _C.REACHABLE)
    if created is None or created.status != "True":
        return Finding(_C.READY, "False", _R.NOT_CREATED, created.message if created else "")
    if reachable is None or reachable.status == "Unknown":
        return Finding(_C.READY, "Unknown", _R.NOT_REACHABLE, "the plane has not reached the instance yet")
    api_server = find_condition(conditions, _C.API_SERVER_HEALTHY)
    for needed in (reachable, api_server):
        if needed is not None and needed.status == "False":
            return Finding(_C.READY, "False", _R.NOT_REACHABLE, needed.message)
    components = [find_condition(conditions, kind) for kind in COMPONENTS.values()]
    # An Unknown component says nothing; an unhealthy one makes the instance degraded.
    unhealthy = [condition for condition in components if condition is not None and condition.status == "False"]
    if unhealthy:
        message = "; ".join(f"{each.type}: {each.message}" for each in unhealthy)
        return Finding(_C.READY, "True", _R.DEGRADED, message)
    return Finding(_C.READY, "True", _R.AS_EXPECTED)


def state_of(conditions: Iterable[Condition], *, deleting: bool) -> InstanceState:
    """The state of the instance in one word."""
    if deleting:
        return InstanceState.TERMINAL
    conditions = tuple(conditions)
    created, ready = find_condition(conditions, _C.CREATED), find_condition(conditions, _C.READY)
    if created is None or created.reason == _R.CREATING:
        return InstanceState.INPROCESS
    if created.status != "True":
        return InstanceState.UNAVAILABLE
    if ready is None or ready.status == "Unknown":
        return InstanceState.UNKNOWN
    return InstanceState.RUNNING if ready.status == "True" else InstanceState.UNAVAILABLE


def _reachable(health: Health) -> Finding:
    if health.reachable:
        return Finding(_C.REACHABLE, "True", _R.ANSWERS)
    reason = _REACHABLE_REASONS.get(health.reason, _R.CONNECT_FAILED)
    return Finding(_C.REACHABLE, "Unknown" if health.reason in _TOO_EARLY else "False", reason, health.message)


def _components(
    seen: Sequence[ComponentHealth] | NotObserved, spec: InstanceSpec, *, shows_all: bool
) -> Iterable[Finding]:
    switched_off = {
        karmada.SEARCH: not spec.search.enabled,
        karmada.METRICS_ADAPTER: not spec.metrics_adapter.enabled,
        karmada.DESCHEDULER: not spec.descheduler.enabled,
    }
    for component, kind in COMPONENTS.items():
        if isinstance(seen, NotObserved):
            yield Finding(kind, "Unknown", _R.NOT_OBSERVED, seen.why)
        elif not (found := [each for each in seen if _belongs(each.component, component)]):
            if switched_off.get(component):
                yield Finding(kind, "True", _R.SWITCHED_OFF)
            elif shows_all:
                yield Finding(kind, "False", _R.NOT_RUNNING)
            else:
                yield Finding(kind, "Unknown", _R.NOT_OBSERVED, "the driver cannot observe it")
        elif unhealthy := [each for each in found if not each.healthy]:
            yield Finding(kind, "False", _R.UNHEALTHY, "; ".join(_described(each, component) for each in unhealthy))
        else:
            yield Finding(kind, "True", _R.HEALTHY)


def _belongs(seen: str, component: str) -> bool:
    """Estimators count as part of the descheduler, because they run for it."""
    return seen == component or (component == karmada.DESCHEDULER and seen.startswith(f"{karmada.ESTIMATOR}-"))


def _described(seen: ComponentHealth, component: str) -> str:
    return seen.reason if seen.component == component else f"{seen.component}: {seen.reason}"


def _members(seen: Sequence[Member] | NotObserved) -> Finding:
    kind = _C.MEMBERS_REACHABLE
    if isinstance(seen, NotObserved):
        return Finding(kind, "Unknown", _R.NOT_OBSERVED, seen.why)
    if not seen:
        return Finding(kind, "True", _R.NO_MEMBERS)
    lost = sorted(member.name for member in seen if not member.ready)
    if not lost:
        return Finding(kind, "True", _R.ALL_REACHABLE)
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    return Finding(kind, "False", _R.SOME_UNREACHABLE, f"{', '.join(lost[:_NAMED])}{more}")
