"""The settings of a running instance: failover, descheduler, metrics adapter.

They are fields of the spec, shown as they are wanted; whether they are in effect is a condition of the instance. In
requests 0 stands for the default.
"""

from typing import Any

from protobuf.wkt import Empty

from kairship.apiserver.services.instance.part import Part, refuse_adopted
from kairship.gen.kairship.instance.v1alpha1.settings_pb import (
    DeschedulerTimeout,
    FailoverTimeout,
    GetInstanceDeschedulerRequest,
    GetInstanceDeschedulerResponse,
    GetInstanceFailoverRequest,
    GetInstanceFailoverResponse,
    GetInstanceMetricsAdapterRequest,
    GetInstanceMetricsAdapterResponse,
    UpdateInstanceDeschedulerRequest,
    UpdateInstanceFailoverRequest,
    UpdateInstanceMetricsAdapterRequest,
)
from kairship.resources.instance import Descheduler, Failover
from kairship.rpc.calls import Call
from kairship.rpc.own_kinds import SeenInstance

NO_EVICTION_TIMEOUT = (
    "failoverEvictionTimeout has no effect: Karmada v1.18 has no such setting. How long a workload stays on a "
    "lost cluster is said by its policy, as tolerationSeconds of placement.clusterTolerations"
)


class SettingsOfInstances(Part):
    async def get_instance_failover(
        self, request: GetInstanceFailoverRequest, call: Call
    ) -> GetInstanceFailoverResponse:
        found = (await self._own.instances.require(request.instance, call)).spec.failover
        timeout = FailoverTimeout(
            cluster_monitor_period=found.cluster_monitor_period_seconds,
            cluster_startup_grace_period=found.cluster_startup_grace_period_seconds,
            cluster_monitor_grace_period=found.cluster_monitor_grace_period_seconds,
            graceful_eviction_timeout=found.graceful_eviction_timeout_seconds,
            cluster_success_threshold=found.cluster_success_threshold_seconds,
            cluster_failure_threshold=found.cluster_failure_threshold_seconds,
        )
        return GetInstanceFailoverResponse(enabled=found.enabled, timeout=timeout)

    async def update_instance_failover(self, request: UpdateInstanceFailoverRequest, call: Call) -> Empty:
        asked, usual = request.timeout or FailoverTimeout(), Failover()
        if asked.failover_eviction_timeout:
            call.warn(NO_EVICTION_TIMEOUT)
        wanted = {
            "enabled": request.enabled,
            "clusterMonitorPeriodSeconds": asked.cluster_monitor_period or usual.cluster_monitor_period_seconds,
            "clusterMonitorGracePeriodSeconds": asked.cluster_monitor_grace_period
            or usual.cluster_monitor_grace_period_seconds,
            "clusterStartupGracePeriodSeconds": asked.cluster_startup_grace_period
            or usual.cluster_startup_grace_period_seconds,
            "clusterSuccessThresholdSeconds": asked.cluster_success_threshold
            or usual.cluster_success_threshold_seconds,
            "clusterFailureThresholdSeconds": asked.cluster_failure_threshold
            or usual.cluster_failure_threshold_seconds,
            "gracefulEvictionTimeoutSeconds": asked.graceful_eviction_timeout
            or usual.graceful_eviction_timeout_seconds,
        }
        return await self._set(request.instance, {"failover": wanted}, call)

    async def get_instance_descheduler(
        self, request: GetInstanceDeschedulerRequest, call: Call
    ) -> GetInstanceDeschedulerResponse:
        found = (await self._own.instances.require(request.instance, call)).spec.descheduler
        timeout = DeschedulerTimeout(
            descheduling_interval=found.interval_seconds,
            unschedulable_threshold=found.unschedulable_threshold_seconds,
        )
        return GetInstanceDeschedulerResponse(enabled=found.enabled, timeout=timeout)

    async def update_instance_descheduler(self, request: UpdateInstanceDeschedulerRequest, call: Call) -> Empty:
        asked, usual = request.timeout or DeschedulerTimeout(), Descheduler()
        wanted = {
            "enabled": request.enabled,
            "intervalSeconds": asked.descheduling_interval or usual.interval_seconds,
            "unschedulableThresholdSeconds": asked.unschedulable_threshold or usual.unschedulable_threshold_seconds,
        }
        return await self._set(request.instance, {"descheduler": wanted}, call)

    async def get_instance_metrics_adapter(
        self, request: GetInstanceMetricsAdapterRequest, call: Call
    ) -> GetInstanceMetricsAdapterResponse:
        found = await self._own.instances.require(request.instance, call)
        return GetInstanceMetricsAdapterResponse(enabled=found.spec.metrics_adapter.enabled)

    async def update_instance_metrics_adapter(self, request: UpdateInstanceMetricsAdapterRequest, call: Call) -> Empty:
        return await self._set(request.instance, {"metricsAdapter": {"enabled": request.enabled}}, call)

    async def _set(self, name: str, spec: dict[str, Any], call: Call) -> Empty:
        def change(current: SeenInstance) -> dict[str, Any]:
            refuse_adopted(current, "change its settings")
            return spec

        await self._change(name, change, call)
        return Empty()
