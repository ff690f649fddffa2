"""The renewal controller: renews credentials that can renew themselves, in the second half of their life.

A key is a cluster. The new token is verified before it replaces the old one, in one write that fails if the Secret was
changed meanwhile. The old token stays valid until it expires, so that a process that still uses it is not cut off. Only
Secrets that container management created are written; other Secrets are renewed by their owners. `renewal_status` says
how it stands with a cluster, and the status controller makes a condition of that.
"""

import datetime as dt
from collections.abc import Callable

import msgspec

from kairship.instances.credentials.self_renewing import OwnToken, own_token, renew
from kairship.instances.membership import renewed_label
from kairship.instances.pool.sources import KubeconfigMissing, SecretShape, read_secret
from kairship.kpanda.credentials.kubeconfigs import read_stored
from kairship.kpanda.credentials.secrets import CREDENTIAL_OF, CredentialSecrets
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.observation.client import observation_client
from kairship.kpanda.sharding import Shard, ShardChanges
from kairship.kube import AddressRule, BadReply, ConfigError, Conflict, Connection, Forbidden, KubeError, NotFound
from kairship.kube.cluster_identity import cluster_identity
from kairship.reconcile import (
    DONE,
    STALE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Result,
    RetryAfter,
    RetryPolicy,
    Watch,
    jittered,
    own_key,
)
from kairship.resources import KUBECONFIG, NAMESPACE
from kairship.rpc.resource_cache import SeenCluster

NAME = "credential-renewal"

_TIMEOUT = 10.0
_AGAIN = 300.0
_LONGEST = 3600.0  # a timer of days would ignore that the wall clock was corrected meanwhile

CredentialKey = tuple[str, str, str, str | None]
"""The cluster, the Secret, the fingerprint of its content, and the address."""


class RenewalStatus(msgspec.Struct, frozen=True):
    """Whether a credential can be renewed before it expires: `problem` says why its renewal failed."""

    problem: str = ""


class _Plan(msgspec.Struct):
    credential: CredentialKey
    due: dt.datetime | None
    """When to act next; None for a credential that cannot be renewed."""
    renewal_status: RenewalStatus | None


class RenewalReconciler:
    def __init__(
        self,
        global_cluster: GlobalCluster,
        secrets: CredentialSecrets,
        *,
        shard: Shard,
        addresses: AddressRule,
        clock: Clock,
    ) -> None:
        self._global_cluster = global_cluster
        self._secrets = secrets
        self._shard = shard
        self._addresses = addresses
        self._clock = clock
        self._plans: dict[str, _Plan] = {}
        self._listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Calls `listener`, which must return at once, with the name of a cluster whose renewal status has changed.

        Returns a function that ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def renewal_status(self, cluster: str) -> RenewalStatus | None:
        """None if the credential of the cluster does not expire, or cannot renew itself."""
        plan = self._plans.get(cluster)
        return plan.renewal_status if plan is not None else None

    async def reconcile(self, context: Context, key: Key) -> Result:
        cluster = self._global_cluster.clusters.reflector.store.get(key.name)
        secret = self._secret_of(cluster) if cluster is not None else None
        if cluster is None or secret is None:
            self._plan(key.name, None)
            return DONE
        credential = _credential_key(cluster, secret)
        plan = self._plans.get(key.name)
        if plan is not None and plan.credential == credential and (plan.due is None or plan.due > self._clock.wall()):
            return self._later(plan)
        try:
            version, kubeconfig = await read_secret(self._global_cluster.client, secret.metadata.name)
            connection = await read_stored(kubeconfig, endpoint=cluster.spec.endpoint)
        except (NotFound, KubeconfigMissing, ConfigError):
            self._plan(key.name, None)
            return DONE
        if version != secret.metadata.resource_version:
            return STALE  # the labels in the cache are not those of the credential that was just read
        token = own_token(connection)
        if token is None or token.ends <= self._clock.wall():
            return self._plan(key.name, _Plan(credential, None, None))
        if token.due > self._clock.wall():
            return self._plan(key.name, _Plan(credential, token.due, RenewalStatus()))
        try:
            await self._renew(cluster, secret, version, await read_stored(kubeconfig, endpoint=None), connection, token)
        except Conflict:
            return STALE
        except KubeError as error:
            left = token.ends - self._clock.wall()
            again = self._clock.wall() + min(dt.timedelta(seconds=jittered(_AGAIN)), left / 10)
            return self._plan(key.name, _Plan(credential, again, RenewalStatus(_explained(error, token))))
        context.log.info("the credential of a cluster was renewed", cluster=key.name, ended=str(token.ends))
        return DONE  # the change of the Secret triggers the next reconciliation

    def _secret_of(self, cluster: SeenCluster) -> SecretShape | None:
        """The Secret with the cluster's credential, if this process has to renew it."""
        if not self._shard.has(cluster.metadata.uid) or cluster.metadata.deletion_timestamp is not None:
            return None
        found = self._global_cluster.secrets.store.get(cluster.spec.credentials.name, namespace=NAMESPACE)
        return found if found is not None and CREDENTIAL_OF in (found.metadata.labels or {}) else None

    async def _renew(
        self,
        cluster: SeenCluster,
        secret: SecretShape,
        version: str,
        stored: Connection,
        connection: Connection,
        token: OwnToken,
    ) -> None:
        """`stored` is the connection in the Secret, and `connection` the one in use, perhaps at another address."""
        async with observation_client(connection, self._addresses, timeout=_TIMEOUT) as client:
            fresh = await renew(client, token, timeout=_TIMEOUT)
        async with observation_client(fresh, self._addresses, timeout=_TIMEOUT) as client:
            identity = await cluster_identity(client, timeout=_TIMEOUT)
        if cluster.status.id and identity != cluster.status.id:
            raise BadReply("the new token is valid for another cluster than the one that was registered")
        await self._secrets.renew(
            secret.metadata.name,
            msgspec.structs.replace(stored, token=fresh.token).to_kubeconfig(name="cluster"),
            resource_version=version,
            label=renewed_label(connection, secret.metadata.labels, fresh),
            timeout=_TIMEOUT,
        )

    def _plan(self, cluster: str, plan: _Plan | None) -> Result:
        before = self.renewal_status(cluster)
        if plan is None:
            self._plans.pop(cluster, None)
        else:
            self._plans[cluster] = plan
        if before != self.renewal_status(cluster):
            for listener in tuple(self._listeners):
                listener(cluster)
        return self._later(plan)

    def _later(self, plan: _Plan | None) -> Result:
        if plan is None or plan.due is None:
            return DONE
        return RetryAfter(min(_LONGEST, max(1.0, (plan.due - self._clock.wall()).total_seconds())))


def renewal_controller(reconciler: RenewalReconciler, global_cluster: GlobalCluster, *, shard: Shard) -> Controller:
    clusters = Watch(global_cluster.clusters.reflector, own_key)
    return Controller(
        name=NAME,
        watches=(clusters, Watch(global_cluster.secrets, global_cluster.clusters_using)),
        sources=(ShardChanges(shard, clusters),),
        reconcile=reconciler.reconcile,
        workers=4,
        timeout=60.0,
        retries=RetryPolicy(backoff=Backoff(2.0, 300.0)),
    )


def _credential_key(cluster: SeenCluster, secret: SecretShape) -> CredentialKey:
    fingerprint = (secret.data or {}).get(KUBECONFIG, "")
    return cluster.metadata.uid, secret.metadata.name, fingerprint, cluster.spec.endpoint


def _explained(error: KubeError, token: OwnToken) -> str:
    if isinstance(error, Forbidden):
        return (
            f"its account {token.namespace}/{token.account} may not create tokens of its own: grant it `create` on "
            "`serviceaccounts/token`"
        )
    return str(error)
