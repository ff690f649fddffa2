"""The janitor: a Secret with a credential belongs to the Cluster that names it, and goes when there is none.

A registration that was killed half way leaves a Secret that nobody names, or one that its Cluster does not own yet. The
first is removed after a while, the second is given to its Cluster. Only Secrets that were made here are looked at.
"""

from collections.abc import Iterable

from kairship.instances.pool_sources import SecretShape
from kairship.kpanda.credentials.secrets import CREDENTIAL_OF, IN_THE_MAKING, CredentialSecrets
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.sharing import Share
from kairship.kube import NotFound
from kairship.reconcile import DONE, Clock, Context, Controller, Key, Result, RetryAfter, Watch
from kairship.resources import NAMESPACE
from kairship.rpc.own_kinds import SeenCluster

NAME = "credential-janitor"

_TIMEOUT = 10.0


def credential_janitor(home: GlobalCluster, secrets: CredentialSecrets, *, share: Share, clock: Clock) -> Controller:
    janitor = Janitor(home, secrets, share=share, clock=clock)
    return Controller(
        name=NAME,
        watches=(Watch(home.secrets, _key_of), Watch(home.clusters.reflector, _key_of_credential)),
        reconcile=janitor.reconcile,
        timeout=60.0,
    )


class Janitor:
    def __init__(self, home: GlobalCluster, secrets: CredentialSecrets, *, share: Share, clock: Clock) -> None:
        self._home = home
        self._secrets = secrets
        self._share = share
        self._clock = clock

    async def reconcile(self, context: Context, key: Key) -> Result:
        known = self._home.secrets.store.get(key.name, namespace=NAMESPACE)
        if known is None or not self._share.has(known.metadata.uid) or not _is_ours(known):
            return DONE
        cluster = self._home.clusters.reflector.store.get((known.metadata.labels or {}).get(CREDENTIAL_OF, ""))
        if cluster is not None and _names(cluster, key.name):
            if not any(owner.uid == cluster.metadata.uid for owner in known.metadata.owner_references):
                name, uid = cluster.metadata.name, cluster.metadata.uid
                await self._secrets.give_to(key.name, cluster=name, uid=uid, timeout=_TIMEOUT)
            return DONE
        return await self._remove(key.name)

    async def _remove(self, name: str) -> Result:
        """What is in memory may be behind: both are read anew before anything is removed."""
        secret = await self._secrets.read(name, timeout=_TIMEOUT)
        if secret is None or not secret.cluster:
            return DONE
        if secret.in_the_making(self._clock.wall()):
            return RetryAfter(IN_THE_MAKING.total_seconds())
        try:
            cluster = await self._home.client.get(
                self._home.clusters.resource, secret.cluster, as_type=SeenCluster, timeout=_TIMEOUT
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
