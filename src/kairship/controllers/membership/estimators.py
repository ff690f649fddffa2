"""The kubeconfigs that the scheduler estimators of an instance need: one for each member, by name.

Estimators run only where the descheduler is enabled, one for each member that has joined. They use the account that
Karmada has in the member. While the instance cannot be reached, the last known kubeconfigs are used.
"""

import base64
from collections.abc import Mapping

from kairship.controllers.global_cluster import GlobalCluster
from kairship.instances import membership
from kairship.instances.pool import NotConnected, Pool
from kairship.kube import Client, Connection, NotFound, kinds
from kairship.resources import Instance


class MemberEstimators:
    def __init__(self, cluster: GlobalCluster, pool: Pool) -> None:
        self._cluster = cluster
        self._pool = pool
        self._known: dict[str, bytes] = {}

    async def __call__(self, instance: Instance) -> Mapping[str, bytes]:
        if not instance.spec.descheduler.enabled:
            return {}
        joined = sorted(
            member.metadata.name
            for member in self._cluster.members_of(instance.name)
            if member.status.karmada_cluster_uid and member.metadata.deletion_timestamp is None
        )
        try:
            client = self._pool.instance(instance.name)
        except NotConnected:
            return {name: self._known[name] for name in joined if name in self._known}
        found = {}
        for name in joined:
            try:
                found[name] = self._known[name] = await _kubeconfig(client, name)
            except NotFound:
                continue
        return found


async def _kubeconfig(instance: Client, name: str) -> bytes:
    cluster = await instance.get(kinds.CLUSTERS, name)
    secret = await instance.get(kinds.SECRETS, membership.secret_names(name)[0], namespace=membership.NAMESPACE)
    connection = Connection(
        server=cluster["spec"]["apiEndpoint"],
        ca=base64.b64decode(secret["data"].get("caBundle", "")) or None,
        token=base64.b64decode(secret["data"]["token"]).decode(),
    )
    return connection.to_kubeconfig(name=name)
