"""Delivers bindings to webhooks: changes in order, repeated until acknowledged, and from time to time a full snapshot.

There is one task per webhook, so that a slow receiver does not hold up others. Two replicas may deliver at the same
time, because deliveries are idempotent. A binding that a receiver can never store is set aside (`rejections`), and
deliveries continue. Redirects are not followed: they would send signed bindings elsewhere. Receivers are held to the
operator's rule of addresses, except the one that the operator has entered. Only the log says why a delivery failed.
"""

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import aiohttp
import sqlalchemy as sa
import structlog
from prometheus_client import CollectorRegistry, Gauge

from kairship.access.delivery.protocol import (
    Acknowledgement,
    Delivery,
    RejectedBinding,
    encode,
    read_acknowledgement,
    signed_headers,
)
from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.delivery import rejections, webhooks
from kairship.ghippo.errors import GhippoError, NotFound
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.outgoing import outgoing_session, reason_of
from kairship.ghippo.sealing import Sealer
from kairship.kube import AddressRule
from kairship.process.change_notifier import wait_at_most
from kairship.reconcile import Backoff, Clock, SystemClock

POLL_INTERVAL = 1.0
"""Finds changes of other replicas; changes of this one are noticed at once."""
SNAPSHOT_EVERY = 600
_MAX_ANSWER = 256 * 1024
_PROBLEM = (
    "the receiver did not acknowledge the delivery, which is repeated; the operator finds the reason in the log of "
    "global management, under the name of the webhook"
)

log = structlog.get_logger(__name__)


class NotDeliveredError(Exception):
    """The receiver did not acknowledge a delivery. The message is for the log of the operator."""


class _Sessions(NamedTuple):
    others: aiohttp.ClientSession
    own: aiohttp.ClientSession
    own_url: str | None

    def for_url(self, url: str) -> aiohttp.ClientSession:
        return self.own if url == self.own_url else self.others


class Deliverer:
    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        audit: AuditLog,
        *,
        addresses: AddressRule,
        own_url: str | None = None,
        metrics: CollectorRegistry | None = None,
        authority: Path | None = None,
        wall: Now = now,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """`addresses` are those that receivers may have. `own_url` is that of the plane itself, which the operator has
        entered and which may have any. `authority` is a CA that receivers' certificates may be from,
        besides those of the system."""
        self._database = database
        self._sealer = sealer
        self._audit = audit
        self._addresses = addresses
        self._own_url = own_url
        self._refused = Gauge(
            "kairship_ghippo_bindings_refused",
            "Bindings that a receiver can never store as they are",
            ("webhook",),
            registry=metrics or CollectorRegistry(),
        )
        self._wall = wall
        self._clock = clock or SystemClock()
        self._authority = authority
        self._backoff = backoff or Backoff(0.2, 3.0)

    async def run(self) -> None:
        """Runs until it is cancelled, with a task for each enabled webhook."""
        tasks: dict[str, asyncio.Task[None]] = {}
        context = await asyncio.to_thread(_ssl_context, self._authority)
        async with (
            outgoing_session(self._addresses, context=context) as session,
            outgoing_session(None, context=context) as own_session,
            asyncio.TaskGroup() as group,
        ):
            sessions = _Sessions(session, own_session, self._own_url)
            while True:
                try:
                    names = {row.name for row in await self._database.read(webhooks.find) if not row.disabled}
                except GhippoError as error:
                    log.warning("webhooks cannot be read", error=str(error))
                    names = set(tasks)
                for name in set(tasks) - names:
                    tasks.pop(name).cancel()
                for name in names:
                    if name not in tasks or tasks[name].done():
                        tasks[name] = group.create_task(self._deliver_to(sessions, name))
                await self._clock.sleep(POLL_INTERVAL)

    async def _deliver_to(self, sessions: _Sessions, name: str) -> None:
        failures = 0
        logged = ""
        while True:
            change = self._database.changes.next_change()
            try:
                await self._deliver_all(sessions, name)
            except NotFound:
                return
            except (NotDeliveredError, GhippoError) as error:
                failures += 1
                if str(error) != logged:
                    logged = str(error)
                    log.warning("a webhook does not acknowledge its deliveries", webhook=name, error=logged)
                await self._record_problem(name, _PROBLEM if isinstance(error, NotDeliveredError) else str(error))
                await self._clock.sleep(self._backoff.pause(failures))
                continue
            failures, logged = 0, ""
            await wait_at_most(change, POLL_INTERVAL)

    async def _deliver_all(self, sessions: _Sessions, name: str) -> None:
        webhook = await self._database.read(lambda connection: webhooks.get(connection, name))
        secret = self._sealer.open(webhook.sealed_secret)
        while changes := await self._database.read(lambda connection: webhooks.next_changes(connection, name)):
            acknowledged = await self._post(sessions, webhook.url, secret, changes)
            await self._record_outcome(name, changes, acknowledged, upto=changes.bindings[-1].spec.sequence)
        if self._wall() - webhook.reconciled_at >= SNAPSHOT_EVERY:
            await self._deliver_snapshot(sessions, name, webhook.url, secret)

    async def _deliver_snapshot(self, sessions: _Sessions, name: str, url: str, secret: str) -> None:
        after: str | None = ""
        while after is not None:
            page = await self._database.read(
                lambda connection, after=after: webhooks.snapshot_page(connection, name, after=after)  # type: ignore[misc]
            )
            await self._record_outcome(name, page, await self._post(sessions, url, secret, page))
            after = page.upto
        at = self._wall()
        await self._database.write(lambda connection: webhooks.record_reconciled(connection, name, at=at))

    async def _record_outcome(
        self, name: str, delivery: Delivery, acknowledged: Acknowledgement, *, upto: int = 0
    ) -> None:
        """Records in one transaction that the delivery was acknowledged, and which bindings were refused."""

        def work(connection: sa.Connection) -> tuple[Sequence[RejectedBinding], int]:
            new = rejections.record(
                connection, self._audit, webhook=name, delivery=delivery, refused=acknowledged.refused, at=self._wall()
            )
            if upto:
                webhooks.acknowledge(connection, name=name, sequence=upto)
            return new, rejections.count(connection, name)

        new, remaining = await self._database.write(work)
        self._refused.labels(name).set(remaining)
        for each in new:
            log.error(
                "a receiver cannot store a binding, which is set aside",
                webhook=name,
                binding=each.name,
                why=each.reason,
            )

    async def _post(self, sessions: _Sessions, url: str, secret: str, delivery: Delivery) -> Acknowledgement:
        body = encode(delivery)
        headers = {"Content-Type": "application/json", **signed_headers(secret, body, at=self._wall())}
        try:
            async with sessions.for_url(url).post(url, data=body, headers=headers, allow_redirects=False) as reply:
                status, answer = reply.status, await reply.content.read(_MAX_ANSWER)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NotDeliveredError(f"the receiver cannot be reached: {reason_of(error)}") from error
        if not 200 <= status < 300:
            raise NotDeliveredError(f"the receiver answered {status}")
        return read_acknowledgement(answer)

    async def _record_problem(self, name: str, problem: str) -> None:
        try:
            await self._database.write(lambda connection: webhooks.record_problem(connection, name, problem))
        except GhippoError as error:
            log.warning("the state of a webhook cannot be written", webhook=name, error=str(error))


def _ssl_context(authority: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authority is not None:
        context.load_verify_locations(authority)
    return context
