"""What all parts of the registry work with."""

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
from kairship.kube import Conflict
from kairship.reconcile import Clock
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, FailedPrecondition
from kairship.rpc.own_kinds import SeenCluster

_ATTEMPTS = 10
_SHOWN_WITHIN = 3.0

Change = Callable[[SeenCluster], dict[str, Any]]
"""From a cluster to a merge patch of it. May refuse."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform allows."""

    longest_kubeconfig: int = 24 * 3600
    """For how many seconds a kubeconfig is valid at most."""


@dataclass(frozen=True, kw_only=True)
class Tools:
    home: GlobalCluster
    pool: Pool
    secrets: CredentialSecrets
    verifier: Verifier
    visibility: Visibility
    clock: Clock
    settings: Settings


class Part:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._home = tools.home
        self._visibility = tools.visibility

    def _shown(self, cluster: SeenCluster) -> Cluster:
        return cluster_view(cluster, instance=self._home.instance_of(cluster))

    async def _require_real(self, name: str, call: Call) -> SeenCluster:
        """For a change, as it is at this moment."""
        await self._visibility.require(name, call)
        cluster = await self._home.clusters.require_latest(name, call)
        if cluster.spec.virtual:
            raise FailedPrecondition(f"cluster {name} stands for an instance: change the instance instead")
        if cluster.metadata.deletion_timestamp is not None:
            raise FailedPrecondition(f"cluster {name} is being removed; nothing about it can change any more")
        return cluster

    async def _patch(self, name: str, change: Change, call: Call, *, resource_version: str = "") -> SeenCluster:
        """`change` sees the cluster as it is at the very moment, and is asked again if that has passed; unless it was
        made from a certain version, which then must be the one that there is."""
        clusters = self._home.clusters
        for _ in range(_ATTEMPTS):
            current = await self._require_real(name, call)
            if resource_version and current.metadata.resource_version != resource_version:
                break
            patch = change(current)
            metadata = {**patch.get("metadata", {}), "resourceVersion": current.metadata.resource_version}
            try:
                changed = await self._home.client.patch(
                    clusters.resource,
                    name,
                    {**patch, "metadata": metadata},
                    field_manager=FIELD_MANAGER,
                    as_type=SeenCluster,
                    timeout=patience(call),
                )
            except Conflict:  # most often the status was written
                continue
            await clusters.written(name, changed.metadata.resource_version, call)
            return changed
        raise Aborted(f"cluster {name} has been changed since it was read; read it and try again")

    async def _settled(self, cluster: SeenCluster, holds: Callable[[SeenCluster], bool], call: Call) -> SeenCluster:
        """The cluster as soon as its status is as it should become, or as it is after a while."""
        found = await self._home.clusters.until(
            cluster.metadata.name, holds, timeout=min(_SHOWN_WITHIN, call.remaining() / 2)
        )
        return found if found is not None and found.metadata.uid == cluster.metadata.uid else cluster
