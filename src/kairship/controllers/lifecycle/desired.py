"""Translates the spec of an instance into the settings that a driver brings about. Pure functions."""

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
    """Whether the spec asks for settings that a driver would have to change."""
    return any(feature.enabled for feature in (spec.failover, spec.descheduler, spec.metrics_adapter, spec.search))


def first_version(spec: InstanceSpec, offered: Sequence[str]) -> str | None:
    """The version in which an instance is created: the one of the spec, or the newest. None if it is not on offer."""
    if spec.version is not None:
        return spec.version if spec.version in offered else None
    return offered[0] if offered else None


def _failover(spec: InstanceSpec) -> karmada.Failover | None:
    failover = spec.failover
    if not failover.enabled:
        return None
    return karmada.Failover(
        cluster_monitor_period=failover.cluster_monitor_period_seconds,
        cluster_monitor_grace_period=failover.cluster_monitor_grace_period_seconds,
        cluster_startup_grace_period=failover.cluster_startup_grace_period_seconds,
        cluster_success_threshold=failover.cluster_success_threshold_seconds,
        cluster_failure_threshold=failover.cluster_failure_threshold_seconds,
        graceful_eviction_timeout=failover.graceful_eviction_timeout_seconds,
    )


def _descheduling(spec: InstanceSpec) -> karmada.Descheduling | None:
    descheduler = spec.descheduler
    if not descheduler.enabled:
        return None
    return karmada.Descheduling(
        interval=descheduler.interval_seconds, unschedulable_threshold=descheduler.unschedulable_threshold_seconds
    )
