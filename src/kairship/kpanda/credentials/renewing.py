"""The controller that renews credentials which can renew themselves, in the half of their life that is left.

A key is a cluster. The new token is verified before it takes the place of the old one, in one write that fails if
anybody was faster; the old one stays valid to its own end, so whoever still uses it is not cut off. Only Secrets that
were made here are written: what others keep, they renew themselves. How it stands with a cluster, `outlook` tells: the
status controller makes the condition of it.
"""

import datetime as dt
from collections.abc import Callable

import msgspec

from kairship.instances.credentials.self_renewing import OwnToken, own_token, renewed
from kairship.instances.membership import renewed_label
from kairship.instances.pool_sources import KubeconfigMissing, SecretShape, read_secret
from kairship.kpanda.credentials.form import read_kept
from kairship.kpanda.credentials.secrets import CREDENTIAL_OF, CredentialSecrets
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.observation.asking import asking
from kairship.kpanda.observation.identity import identity_of
from kairship.kpanda.sharing import Share
from kairship.kube import AddressRule, BadReply, ConfigError, Conflict, Connection, Forbidden, KubeError, NotFound
from kairship.reconcile import (
    DONE,
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
from kairship.rpc.own_kinds import SeenCluster

NAME = "credential-renewal"

_TIMEOUT = 10.0
_STALE = 0.2
_AGAIN = 300.0
_LONGEST = 3600.0  # timers of days would be those of a clock that was never set right

MadeOf = tuple[str, str, str, str | None]
"""The cluster, the Secret, its content and the address."""


class Outlook(msgspec.Struct, frozen=True):
    """That a credential is renewed before it ends, or what has kept it from that."""

    problem: str = ""


class _Plan(msgspec.Struct):
    made_of: MadeOf
    due: dt.datetime | None
    """When there is something to do; None for what cannot be renewed."""
    outlook: Outlook | None


class Renewing:
    def __init__(
        self, home: GlobalCluster, secrets: CredentialSecrets, *, share: Share, addresses: AddressRule, clock: Clock
    ) -> None:
        self._home = home
        self._secrets = secrets
        self._share = share
        self._addresses = addresses
        self._clock = clock
        self._plans: dict[str, _Plan] = {}
        self._changed: Callable[[str], None] = lambda _: None

    def tell(self, changed: Callable[[str], None]) -> None:
        """`changed` hears of clusters whose outlook is another one. It must return at once."""
        self._changed = changed

    def outlook(self, cluster: str) -> Outlook | None:
        """None if the credential of the cluster does not end, or cannot be renewed by itself."""
        plan = self._plans.get(cluster)
        return plan.outlook if plan is not None else None

    async def reconcile(self, context: Context, key: Key) -> Result:
        cluster = self._home.clusters.reflector.store.get(key.name)
        secret = self._secret_of(cluster) if cluster is not None else None
        if cluster is None or secret is None:
            self._plan(key.name, None)
            return DONE
        made_of = _made_of(cluster, secret)
        plan = self._plans.get(key.name)
        if plan is not None and plan.made_of == made_of and (plan.due is None or plan.due > self._clock.wall()):
            return self._later(plan)
        try:
            version, kubeconfig = await read_secret(self._home.client, secret.metadata.name)
            connection = await read_kept(kubeconfig, endpoint=cluster.spec.endpoint)
        except (NotFound, KubeconfigMissing, ConfigError):
            self._plan(key.name, None)
            return DONE
        token = own_token(connection)
        if token is None or token.ends <= self._clock.wall():
            return self._plan(key.name, _Plan(made_of, None, None))
        if token.due > self._clock.wall():
            return self._plan(key.name, _Plan(made_of, token.due, Outlook()))
        try:
            await self._renew(cluster, secret, version, await read_kept(kubeconfig, endpoint=None), connection, token)
        except Conflict:
            return RetryAfter(_STALE)
        except KubeError as error:
            left = token.ends - self._clock.wall()
            again = self._clock.wall() + min(dt.timedelta(seconds=jittered(_AGAIN)), left / 10)
            return self._plan(key.name, _Plan(made_of, again, Outlook(_explained(error, token))))
        context.log.info("the credential of a cluster was renewed", cluster=key.name, ended=str(token.ends))
        return DONE  # the Secret's change wakes it

    def _secret_of(self, cluster: SeenCluster) -> SecretShape | None:
        """The one with its credential, if it is ours to renew."""
        if not self._share.has(cluster.metadata.uid) or cluster.metadata.deletion_timestamp is not None:
            return None
        found = self._home.secrets.store.get(cluster.spec.credentials.name, namespace=NAMESPACE)
        return found if found is not None and CREDENTIAL_OF in (found.metadata.labels or {}) else None

    async def _renew(
        self,
        cluster: SeenCluster,
        secret: SecretShape,
        version: str,
        kept: Connection,
        connection: Connection,
        token: OwnToken,
    ) -> None:
        """`kept` is the connection as the Secret has it, `connection` as it is used: perhaps at another address."""
        async with asking(connection, self._addresses, timeout=_TIMEOUT) as client:
            fresh = await renewed(client, token, timeout=_TIMEOUT)
        async with asking(fresh, self._addresses, timeout=_TIMEOUT) as client:
            identity = await identity_of(client, timeout=_TIMEOUT)
        if cluster.status.id and identity != cluster.status.id:
            raise BadReply("the new token opens another cluster than the one that was registered")
        await self._secrets.renew(
            secret.metadata.name,
            msgspec.structs.replace(kept, token=fresh.token).to_kubeconfig(name="cluster"),
            resource_version=version,
            label=renewed_label(connection, secret.metadata.labels, fresh),
            timeout=_TIMEOUT,
        )

    def _plan(self, cluster: str, plan: _Plan | None) -> Result:
        before = self.outlook(cluster)
        if plan is None:
            self._plans.pop(cluster, None)
        else:
            self._plans[cluster] = plan
        if before != self.outlook(cluster):
            self._changed(cluster)
        return self._later(plan)

    def _later(self, plan: _Plan | None) -> Result:
        if plan is None or plan.due is None:
            return DONE
        return RetryAfter(min(_LONGEST, max(1.0, (plan.due - self._clock.wall()).total_seconds())))


def renewal_controller(renewing: Renewing, home: GlobalCluster) -> Controller:
    return Controller(
        name=NAME,
        watches=(Watch(home.clusters.reflector, own_key), Watch(home.secrets, home.opened_by)),
        reconcile=renewing.reconcile,
        workers=4,
        timeout=60.0,
        retries=RetryPolicy(backoff=Backoff(2.0, 300.0)),
    )


def _made_of(cluster: SeenCluster, secret: SecretShape) -> MadeOf:
    fingerprint = (secret.data or {}).get(KUBECONFIG, "")
    return cluster.metadata.uid, secret.metadata.name, fingerprint, cluster.spec.endpoint


def _explained(error: KubeError, token: OwnToken) -> str:
    if isinstance(error, Forbidden):
        return (
            f"its account {token.namespace}/{token.account} may not create tokens of its own: grant it `create` on "
            "`serviceaccounts/token`"
        )
    return str(error)
