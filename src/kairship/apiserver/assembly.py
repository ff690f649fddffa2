"""What a worker serves: services, the clients by which they reach instances, the roles behind, and who may do what."""

import asyncio
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from kairship.access import BindingStore, Feed
from kairship.access.rights import Rights
from kairship.apiserver.authorisation import Gatekeeper
from kairship.apiserver.proxy.indexed import IndexedReads
from kairship.apiserver.proxy.noting import NotedWrites
from kairship.apiserver.services import Offer, Services
from kairship.apiserver.services.instance.part import PublicAddress
from kairship.apiserver.services.instance.part import Settings as ServiceSettings
from kairship.apiserver.webhook import BindingWebhook
from kairship.apiserver.webhook_secrets import WebhookSecrets
from kairship.index.opening import IndexPlace
from kairship.instances.pool import Pool, PoolMetrics, PoolSettings
from kairship.kube import AddressRule, Client
from kairship.reconcile import Metrics, SystemClock
from kairship.resources import binding_webhook
from kairship.rpc.registry import Registry
from kairship.rpc.role_channel import RoleAddress, RoleChannel

_GHIPPO, _KPANDA = "kairship.ghippo.v1alpha1", "kairship.kpanda.v1alpha1"


class Assembly:
    def __init__(
        self,
        client: Client,
        *,
        offers: Sequence[Offer],
        ghippo: RoleAddress,
        kpanda: RoleAddress | None,
        index: IndexPlace,
        public: PublicAddress | None,
        addresses: AddressRule,
        metrics: CollectorRegistry,
    ) -> None:
        """`client` is the one of the global cluster, `public` where people reach the entrance, `addresses` where
        instances may be."""
        clock, reconcile_metrics = SystemClock(), Metrics(metrics)
        self.pool = Pool(
            client,
            clock=clock,
            metrics=reconcile_metrics,
            pool_metrics=PoolMetrics(metrics),
            settings=PoolSettings(addresses=addresses),
        )
        self.feed = Feed(client, clock=clock, metrics=reconcile_metrics)
        self._webhook_secrets = WebhookSecrets(client, clock=clock, metrics=reconcile_metrics)
        self.receivers = {
            binding_webhook.PATH: BindingWebhook(BindingStore(client, self.feed), self._webhook_secrets).handle
        }
        self.gatekeeper = Gatekeeper(self.feed.authoriser)
        self.ghippo = RoleChannel(ghippo, role="global management")
        self._roles = {_GHIPPO: self.ghippo}
        if kpanda is not None:
            self._roles[_KPANDA] = RoleChannel(kpanda, role="container management")
        self._services = Services(
            client,
            self.pool,
            clock=clock,
            metrics=reconcile_metrics,
            offers=offers,
            ghippo=self.ghippo,
            own=self.ghippo,
            settings=ServiceSettings(public=public),
            index=index,
        )
        self.reads = IndexedReads(self._services.index, self._services.collected)
        self.writes = NotedWrites(self._services.index, self._services.collected)
        rights = {f"{_GHIPPO}.Rights": Rights(self.feed.authoriser)}
        self.registry = Registry({**self._services.by_name(), **rights}, owners=self._roles)

    async def __aenter__(self) -> "Assembly":
        return self

    async def __aexit__(self, *_: object) -> None:
        """After the last request has ended."""
        for channel in self._roles.values():
            await channel.close()

    async def run(self) -> None:
        """Follow what is read from memory, and keep clients ready. Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pool.run())
            tasks.create_task(self._services.run())
            tasks.create_task(self.feed.run())
            tasks.create_task(self._webhook_secrets.run())

    async def wait_synced(self) -> None:
        await self.pool.wait_synced()
        await self._services.wait_synced()
        await self.feed.wait_trusted()
