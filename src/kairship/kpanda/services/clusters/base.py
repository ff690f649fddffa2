"""The base of the mixins of the service `Clusters`, and their dependencies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster
from kairship.instances.pool import Pool
from kairship.kpanda.credentials.secrets import FIELD_MANAGER, CredentialSecrets
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.services.clusters.view import cluster_view
from kairship.kpanda.services.visibility import Visibility
from kairship.kpanda.verification import Verifier
from kairship.kube import retry_on_conflict
from kairship.reconcile import Clock
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, FailedPrecondition
from kairship.rpc.resource_cache import SeenCluster

_ATTEMPTS = 10
_SHOWN_WITHIN = 3.0

Change = Callable[[SeenCluster], dict[str, Any]]
"""Returns the merge patch of a cluster. It may refuse the change by raising an `ApiError`."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that the platform sets."""

    longest_kubeconfig: int = 24 * 3600
    """The longest validity of a kubeconfig, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    global_cluster: GlobalCluster
    pool: Pool
    secrets: CredentialSecrets
    verifier: Verifier
    visibility: Visibility
    clock: Clock
    limits: Limits


class ClustersBase:
    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._global_cluster = dependencies.global_cluster
        self._visibility = dependencies.visibility

    def _shown(self, cluster: SeenCluster) -> Cluster:
        return cluster_view(cluster, instance=self._global_cluster.instance_of(cluster))

    async def _require_real(self, name: str, call: Call) -> SeenCluster:
        """The cluster as it is at this moment, for a change. Refuses virtual clusters and those being removed."""
        await self._visibility.require(name, call)
        cluster = await self._global_cluster.clusters.require_latest(name, call)
        if cluster.spec.virtual:
            raise FailedPrecondition(f"cluster {name} stands for an instance: change the instance instead")
        if cluster.metadata.deletion_timestamp is not None:
            raise FailedPrecondition(f"cluster {name} is being removed; nothing about it can change any more")
        return cluster

    async def _patch(self, name: str, change: Change, call: Call, *, resource_version: str = "") -> SeenCluster:
        """`change` sees the cluster as it is at the very moment, and is asked again if that has passed; unless it was
        made from a certain version, which then must be the one that there is."""
        clusters = self._global_cluster.clusters
        changed_since = Aborted(f"cluster {name} has been changed since it was read; read it and try again")

        async def write() -> SeenCluster:
            current = await self._require_real(name, call)
            if resource_version and current.metadata.resource_version != resource_version:
                raise changed_since
            patch = change(current)
            metadata = {**patch.get("metadata", {}), "resourceVersion": current.metadata.resource_version}
            changed = await self._global_cluster.client.typed(SeenCluster).patch(
                clusters.resource,
                name,
                {**patch, "metadata": metadata},
                field_manager=FIELD_MANAGER,
                timeout=patience(call),
            )
            await clusters.written(name, changed.metadata.resource_version, call)
            return changed

        # Most often a controller has written the status.
        return await retry_on_conflict(write, attempts=_ATTEMPTS, exhausted=changed_since)

    async def _wait_until(self, cluster: SeenCluster, holds: Callable[[SeenCluster], bool], call: Call) -> SeenCluster:
        """The cluster as soon as `holds` is true of it, or as it is after some seconds."""
        found = await self._global_cluster.clusters.until(
            cluster.metadata.name, holds, timeout=min(_SHOWN_WITHIN, call.remaining() / 2)
        )
        return found if found is not None and found.metadata.uid == cluster.metadata.uid else cluster
