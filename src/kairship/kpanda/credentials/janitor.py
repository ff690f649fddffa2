"""The janitor: a Secret with a credential belongs to the Cluster that names it, and is removed if there is none.

A registration that was killed half way leaves a Secret that no Cluster names, or one that its Cluster does not own yet.
The first is removed after a while; the second gets its Cluster as owner. The janitor handles only Secrets that
container management created.
"""

from collections.abc import Iterable

from kairship.instances.pool.sources import SecretShape
from kairship.kpanda.credentials.secrets import CREDENTIAL_OF, REGISTRATION_GRACE, CredentialSecrets
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.sharding import Shard, ShardChanges
from kairship.kube import NotFound
from kairship.reconcile import DONE, Clock, Context, Controller, Key, Result, RetryAfter, Watch
from kairship.resources import NAMESPACE
from kairship.rpc.resource_cache import SeenCluster

NAME = "credential-janitor"

_TIMEOUT = 10.0


def credential_janitor(
    global_cluster: GlobalCluster, secrets: CredentialSecrets, *, shard: Shard, clock: Clock
) -> Controller:
    janitor = Janitor(global_cluster, secrets, shard=shard, clock=clock)
    credentials = Watch(global_cluster.secrets, _key_of)
    return Controller(
        name=NAME,
        watches=(credentials, Watch(global_cluster.clusters.reflector, _key_of_credential)),
        sources=(ShardChanges(shard, credentials),),
        reconcile=janitor.reconcile,
        timeout=60.0,
    )


class Janitor:
    def __init__(
        self, global_cluster: GlobalCluster, secrets: CredentialSecrets, *, shard: Shard, clock: Clock
    ) -> None:
        self._global_cluster = global_cluster
        self._secrets = secrets
        self._shard = shard
        self._clock = clock

    async def reconcile(self, context: Context, key: Key) -> Result:
        known = self._global_cluster.secrets.store.get(key.name, namespace=NAMESPACE)
        if known is None or not self._shard.has(known.metadata.uid) or not _is_ours(known):
            return DONE
        cluster = self._global_cluster.clusters.reflector.store.get(
            (known.metadata.labels or {}).get(CREDENTIAL_OF, "")
        )
        if cluster is not None and _names(cluster, key.name):
            if not any(owner.uid == cluster.metadata.uid for owner in known.metadata.owner_references):
                name, uid = cluster.metadata.name, cluster.metadata.uid
                await self._secrets.set_owner(key.name, cluster=name, uid=uid, timeout=_TIMEOUT)
            return DONE
        return await self._remove(key.name)

    async def _remove(self, name: str) -> Result:
        """Removes a Secret. The caches may be behind, so Secret and Cluster are read anew before."""
        secret = await self._secrets.read(name, timeout=_TIMEOUT)
        if secret is None or not secret.cluster:
            return DONE
        if secret.is_being_registered(self._clock.wall()):
            return RetryAfter(REGISTRATION_GRACE.total_seconds())
        try:
            cluster = await self._global_cluster.client.typed(SeenCluster).get(
                self._global_cluster.clusters.resource, secret.cluster, timeout=_TIMEOUT
            )
        except NotFound:
            cluster = None
        if cluster is None or not _names(cluster, name):
            await self._secrets.remove(secret, timeout=_TIMEOUT)
        return DONE


def _is_ours(secret: SecretShape) -> bool:
    return bool((secret.metadata.labels or {}).get(CREDENTIAL_OF))


def _names(cluster: SeenCluster, secret: str) -> bool:
    return cluster.spec.credentials.name == secret


def _key_of(secret: SecretShape) -> Iterable[Key]:
    return (Key(secret.metadata.name),) if _is_ours(secret) else ()


def _key_of_credential(cluster: SeenCluster) -> Iterable[Key]:
    return (Key(cluster.spec.credentials.name),)
