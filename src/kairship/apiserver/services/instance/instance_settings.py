"""The settings of a running instance: failover, descheduler, metrics adapter.

They are fields of the spec, and replies show the spec; whether the settings are in effect is a condition of the
instance. In requests 0 stands for the default.
"""

from typing import Any

from protobuf.wkt import Empty

from kairship.apiserver.services.instance.base import InstanceServiceBase, refuse_adopted
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
from kairship.rpc.resource_cache import SeenInstance

NO_EVICTION_TIMEOUT = (
    "failoverEvictionTimeout has no effect: Karmada v1.18 has no such setting. How long a workload stays on a "
    "lost cluster is decided by its policy, with tolerationSeconds in placement.clusterTolerations"
)


class InstanceSettings(InstanceServiceBase):
    async def get_instance_failover(
        self, request: GetInstanceFailoverRequest, call: Call
    ) -> GetInstanceFailoverResponse:
        found = (await self._caches.instances.require(request.instance, call)).spec.failover
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
        timeout, default = request.timeout or FailoverTimeout(), Failover()
        if timeout.failover_eviction_timeout:
            call.warn(NO_EVICTION_TIMEOUT)
        wanted = {
            "enabled": request.enabled,
            "clusterMonitorPeriodSeconds": timeout.cluster_monitor_period or default.cluster_monitor_period_seconds,
            "clusterMonitorGracePeriodSeconds": timeout.cluster_monitor_grace_period
            or default.cluster_monitor_grace_period_seconds,
            "clusterStartupGracePeriodSeconds": timeout.cluster_startup_grace_period
            or default.cluster_startup_grace_period_seconds,
            "clusterSuccessThresholdSeconds": timeout.cluster_success_threshold
            or default.cluster_success_threshold_seconds,
            "clusterFailureThresholdSeconds": timeout.cluster_failure_threshold
            or default.cluster_failure_threshold_seconds,
            "gracefulEvictionTimeoutSeconds": timeout.graceful_eviction_timeout
            or default.graceful_eviction_timeout_seconds,
        }
        return await self._set(request.instance, {"failover": wanted}, call)

    async def get_instance_descheduler(
        self, request: GetInstanceDeschedulerRequest, call: Call
    ) -> GetInstanceDeschedulerResponse:
        found = (await self._caches.instances.require(request.instance, call)).spec.descheduler
        timeout = DeschedulerTimeout(
            descheduling_interval=found.interval_seconds,
            unschedulable_threshold=found.unschedulable_threshold_seconds,
        )
        return GetInstanceDeschedulerResponse(enabled=found.enabled, timeout=timeout)

    async def update_instance_descheduler(self, request: UpdateInstanceDeschedulerRequest, call: Call) -> Empty:
        timeout, default = request.timeout or DeschedulerTimeout(), Descheduler()
        wanted = {
            "enabled": request.enabled,
            "intervalSeconds": timeout.descheduling_interval or default.interval_seconds,
            "unschedulableThresholdSeconds": timeout.unschedulable_threshold or default.unschedulable_threshold_seconds,
        }
        return await self._set(request.instance, {"descheduler": wanted}, call)

    async def get_instance_metrics_adapter(
        self, request: GetInstanceMetricsAdapterRequest, call: Call
    ) -> GetInstanceMetricsAdapterResponse:
        found = await self._caches.instances.require(request.instance, call)
        return GetInstanceMetricsAdapterResponse(enabled=found.spec.metrics_adapter.enabled)

    async def update_instance_metrics_adapter(self, request: UpdateInstanceMetricsAdapterRequest, call: Call) -> Empty:
        return await self._set(request.instance, {"metricsAdapter": {"enabled": request.enabled}}, call)

    async def _set(self, name: str, spec: dict[str, Any], call: Call) -> Empty:
        def change(current: SeenInstance) -> dict[str, Any]:
            refuse_adopted(current, "change its settings")
            return spec

        await self._change(name, change, call)
        return Empty()
