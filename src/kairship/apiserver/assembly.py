"""The wiring of a worker: everything that serves requests is constructed and connected here.

Nothing runs on construction. `worker` runs what is assembled, and decides what stops when.
"""

import asyncio

from prometheus_client import CollectorRegistry

from kairship.access import AccessInformer, BindingStore, Identities
from kairship.access.rights_service import Rights
from kairship.apiserver.audit import Shipper, Spool, SpooledAudit
from kairship.apiserver.auth.authorisation import MethodAuthoriser
from kairship.apiserver.auth.directory_follower import DirectoryFollower
from kairship.apiserver.auth.revocation import DirectoryRevocationCheck, end_streams_when_revoked
from kairship.apiserver.auth.token_authenticator import TokenAuthenticator
from kairship.apiserver.auth.token_uses import TokenUses
from kairship.apiserver.bindings.webhook import BindingWebhook
from kairship.apiserver.bindings.webhook_secrets import WebhookSecrets
from kairship.apiserver.entrance import Entrance
from kairship.apiserver.flowcontrol.client_address import TrustedProxies
from kairship.apiserver.flowcontrol.stream_guard import StreamGuard
from kairship.apiserver.pipeline.tracing import Tracing
from kairship.apiserver.proxy.handler import ProxyDependencies
from kairship.apiserver.proxy.index.own_writes import OwnWrites
from kairship.apiserver.proxy.index.reads import IndexedReads
from kairship.apiserver.proxy.request.audit import ProxyAudit
from kairship.apiserver.proxy.request.authorisation import ProxyAuthoriser
from kairship.apiserver.services import KubeconfigSettings, Services
from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.apiserver.settings import Settings
from kairship.instances.pool import Pool, PoolMetrics, PoolSettings
from kairship.kube import AddressRule, Client
from kairship.process.start_error import StartError
from kairship.reconcile import Metrics, SystemClock
from kairship.resources import binding_webhook
from kairship.rpc.backend_channel import BackendChannel
from kairship.rpc.service_registry import ServiceRegistry

_GHIPPO, _KPANDA = "kairship.ghippo.v1alpha1", "kairship.kpanda.v1alpha1"


class Assembly:
    """Use it as a context manager: on exit, after the last request, it ships the rest of the audit."""

    def __init__(self, client: Client, settings: Settings, *, metrics: CollectorRegistry, tracing: Tracing) -> None:
        """`client` is the client of the global cluster. Raises `StartError` if the audit cannot be written."""
        clock, reconcile_metrics = SystemClock(), Metrics(metrics)
        try:
            spool = Spool(settings.audit_dir)
        except OSError as error:
            raise StartError(f"the audit cannot be written to {settings.audit_dir}: {error.strerror}") from None

        ghippo = BackendChannel(settings.ghippo, name="global management")
        self._backends = {_GHIPPO: ghippo}
        if settings.kpanda is not None:
            self._backends[_KPANDA] = BackendChannel(settings.kpanda, name="container management")
        self._shipper = Shipper(spool, ghippo)

        identities = Identities(clock)
        self._feed = AccessInformer(client, clock=clock, metrics=reconcile_metrics)
        self._directory_follower = DirectoryFollower(ghippo, identities, self._feed.outdated)
        self._token_uses = TokenUses(ghippo)
        revocation = DirectoryRevocationCheck(identities)
        self._webhook_secrets = WebhookSecrets(client, clock=clock, metrics=reconcile_metrics)

        self._pool = Pool(
            client,
            clock=clock,
            metrics=reconcile_metrics,
            pool_metrics=PoolMetrics(metrics),
            settings=PoolSettings(addresses=AddressRule.allowing(settings.allow_addresses)),
        )
        self._services = Services(
            client,
            self._pool,
            clock=clock,
            metrics=reconcile_metrics,
            drivers=settings.drivers,
            ghippo=ghippo,
            own=ghippo,
            kubeconfigs=KubeconfigSettings(public=settings.public),
            index=settings.index,
        )
        rights = {f"{_GHIPPO}.Rights": Rights(self._feed.authoriser)}

        self.entrance = Entrance(
            ServiceRegistry({**self._services.by_name(), **rights}, backends=self._backends),
            authenticator=TokenAuthenticator(
                identities,
                look_up=self._directory_follower.look_up,
                note_use=self._token_uses.note,
                limits=settings.limits,
            ),
            authoriser=MethodAuthoriser(self._feed.authoriser, revocation),
            audit=SpooledAudit(spool),
            limits=settings.limits,
            metrics=metrics,
            tracing=tracing,
            webhooks={
                binding_webhook.PATH: BindingWebhook(BindingStore(client, self._feed), self._webhook_secrets).handle
            },
            trusted_proxies=TrustedProxies.parse(settings.trusted_proxies),
            proxied=ProxyDependencies(
                instances=InstanceClients(self._pool),
                authoriser=ProxyAuthoriser(self._feed.authoriser),
                revocation=revocation,
                audit=ProxyAudit(spool),
                reads=IndexedReads(self._services.index, self._services.collected),
                own_writes=OwnWrites(self._services.index, self._services.collected),
                execution_namespaces=self._services.execution_namespaces,
            ),
        )
        self._stream_guard = StreamGuard(self.entrance.streams)
        self._feed.on_binding_changed(self._stream_guard.binding_lost)
        end_streams_when_revoked(identities, self.entrance.streams)

    async def __aenter__(self) -> "Assembly":
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._shipper.finish()
        finally:
            for channel in self._backends.values():
                await channel.close()

    async def run(self) -> None:
        """Keeps caches of the global cluster and clients of instances current. Runs until it is cancelled.

        It stops when the worker begins to stop: the requests that still run are served from what is known by then.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pool.run())
            tasks.create_task(self._services.run())
            tasks.create_task(self._feed.run())
            tasks.create_task(self._webhook_secrets.run())
            tasks.create_task(self._stream_guard.run())

    async def run_identities_and_audit(self) -> None:
        """Follows the directory of global management, and ships the audit to it. Runs until it is cancelled.

        It must run until the last request has ended, because an act that cannot be audited is refused.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._directory_follower.run())
            tasks.create_task(self._token_uses.run())
            tasks.create_task(self._shipper.run())

    async def wait_synced(self) -> None:
        """Returns when the caches of the global cluster are complete."""
        await self._pool.wait_synced()
        await self._services.wait_synced()
        await self._feed.wait_ready()

    async def wait_identities(self) -> None:
        """Returns when every user, group and token is known."""
        await self._directory_follower.wait_complete()
