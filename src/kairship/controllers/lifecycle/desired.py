"""From what somebody asks for in a spec to what a driver is asked for. Pure functions."""

from collections.abc import Mapping, Sequence

from kairship.controlplane import karmada
from kairship.controlplane.karmada import KarmadaSettings
from kairship.resources import InstanceSpec


def settings_of(spec: InstanceSpec, *, version: str, estimators: Mapping[str, bytes]) -> KarmadaSettings:
    """The settings of `spec` at this version; `estimators` are the kubeconfigs of members, by name."""
    return KarmadaSettings(
        version=version,
        failover=_failover(spec),
        descheduling=_descheduling(spec),
        metrics_adapter=spec.metrics_adapter.enabled,
        search=spec.search.enabled,
        estimators=dict(estimators) if spec.descheduler.enabled else {},
    )


def asks_for_settings(spec: InstanceSpec) -> bool:
    """Whether anything is asked for that a driver would have to change."""
    return any(part.enabled for part in (spec.failover, spec.descheduler, spec.metrics_adapter, spec.search))


def first_version(spec: InstanceSpec, offered: Sequence[str]) -> str | None:
    """The version in which an instance is created: the one asked for if it is on offer, else the newest, if any."""
    if spec.version is not None:
        return spec.version if spec.version in offered else None
    return offered[0] if offered else None


def _failover(spec: InstanceSpec) -> karmada.Failover | None:
    asked = spec.failover
    if not asked.enabled:
        return None
    return karmada.Failover(
        cluster_monitor_period=asked.cluster_monitor_period_seconds,
        cluster_monitor_grace_period=asked.cluster_monitor_grace_period_seconds,
        cluster_startup_grace_period=asked.cluster_startup_grace_period_seconds,
        cluster_success_threshold=asked.cluster_success_threshold_seconds,
        cluster_failure_threshold=asked.cluster_failure_threshold_seconds,
        graceful_eviction_timeout=asked.graceful_eviction_timeout_seconds,
    )


def _descheduling(spec: InstanceSpec) -> karmada.Descheduling | None:
    asked = spec.descheduler
    if not asked.enabled:
        return None
    return karmada.Descheduling(
        interval=asked.interval_seconds, unschedulable_threshold=asked.unschedulable_threshold_seconds
    )
