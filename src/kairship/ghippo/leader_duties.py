"""The tasks of the leading replica: registrations, built-in roles, deliveries to webhooks, cleanup.

Each task may be cancelled at any point and repeated by another replica.
"""

import asyncio
from functools import partial

from prometheus_client import CollectorRegistry

from kairship.ghippo.audit import AuditLog
from kairship.ghippo.cleanup import Cleanup
from kairship.ghippo.database import Database
from kairship.ghippo.delivery.deliverer import Deliverer
from kairship.ghippo.delivery.plane_webhook import PlaneWebhook
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.settings import Settings
from kairship.ghippo.tenancy.built_in_roles import refresh_built_in_roles
from kairship.ghippo.tenancy.registrations import (
    NAME,
    REGISTERED,
    registrations_controller,
    requeue_changed_holdings,
    unregister_deleted,
)
from kairship.kube import Connection
from kairship.reconcile import FencedBy, InterceptedClient, LeaderTerm, Manager, Metrics, Reflector, SystemClock

USER_AGENT = "kairship-ghippo-leader"


class LeaderDuties:
    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        database: Database,
        sealer: Sealer,
        audit: AuditLog,
        *,
        registry: CollectorRegistry,
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._database = database
        self._sealer = sealer
        self._audit = audit
        self._clock = SystemClock()
        self.metrics = Metrics(registry)
        # Created once: a second term must not register its metrics again.
        self._deliverer = Deliverer(
            database,
            sealer,
            audit,
            addresses=settings.addresses,
            own_url=settings.webhook,
            metrics=registry,
            authority=settings.webhook_ca,
        )

    async def run(self, term: LeaderTerm | None) -> None:
        """Runs until it is cancelled. Without a term there is only this replica."""
        fence = [FencedBy(term)] if term is not None else []
        database, clock = self._database, self._clock
        async with InterceptedClient(self._connection, interceptors=fence, user_agent=USER_AGENT) as client:
            reflector = Reflector(client, REGISTERED, clock=clock, metrics=self.metrics)
            controller = registrations_controller(reflector, database)
            manager = Manager([controller], client=client, clock=clock, metrics=self.metrics, term=term)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(manager.run())
                tasks.create_task(refresh_built_in_roles(database, clock=clock))
                tasks.create_task(unregister_deleted(reflector, database, clock=clock))
                tasks.create_task(self._deliverer.run())
                tasks.create_task(
                    requeue_changed_holdings(reflector, database, partial(manager.add, NAME), clock=clock)
                )
                tasks.create_task(Cleanup(database, self._audit, audit_days=self._settings.audit_days).run())
                if self._settings.webhook is not None:
                    webhook = PlaneWebhook(client, database, self._sealer, url=self._settings.webhook)
                    tasks.create_task(webhook.run())
