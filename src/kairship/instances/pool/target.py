"""One target of the pool: its client, kept in step with its Secret, and its health.

Each target has one task, and nothing in it waits for another target. The task reads the Secret, makes the client and
probes until something changes, then begins again. A change interrupts a probe, however long that hangs. Reading
`client` and `health` never waits. Probes have a connection of their own: users of the client who exhaust its
connections must not make a target look dead.

A client that was replaced serves its running calls for a while longer. A client whose credential was withdrawn, because
the Secret or the object is gone or the kubeconfig is refused, is closed at once.
"""

import asyncio
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import structlog

from kairship.instances.pool.health import Health, Reason, TargetKind
from kairship.instances.pool.metrics import TargetMetrics
from kairship.instances.pool.sources import (
    KubeconfigMissing,
    Reference,
    connection_from,
    fingerprint,
    read_kubeconfig,
)
from kairship.kube import AddressRule, Client, ConfigError, Connection, Forbidden, KubeError, NotFound
from kairship.process.cancellation import run_in_task
from kairship.reconcile import Backoff, Clock, jittered
from kairship.resources import NAMESPACE

log = structlog.get_logger(__name__)

_BACKOFF = Backoff(0.5, 30.0)
_PAUSE_AFTER_DEFECT = 10.0
_NOT_YET = "it has not answered yet; try again in a moment"


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and intervals of the pool. Times are in seconds.

    With the defaults a target that hangs, which of all faults takes longest to detect, counts as unreachable within
    7 s. That leaves 3 s to write a condition, of the 10 s within which a fault must show.
    """

    max_connections: int = 16
    """Concurrent calls to one target; further calls wait. Streams have a limit of their own."""
    max_streams: int = 4096
    """Concurrent watches and other streams of one target; the proxy limits them per caller."""
    probe_interval: float = 2.0
    healthy_interval: float | None = None
    """The interval between probes of healthy clusters, if it differs from `probe_interval`: for processes with many
    clusters. With 5 s a cluster that hangs is still detected within 10 s."""
    probe_timeout: float = 2.0
    max_connecting: int = 32
    """How many unreachable targets are probed concurrently. With a thousand at once, as at the start, the work of
    connecting would let all of the probes time out, again and again."""
    retry_interval: float = 0.5
    """The interval between probes until `failure_threshold` is reached."""
    failure_threshold: int = 2
    """How many failures in a row make a target unreachable."""
    addresses: AddressRule | None = None
    """The addresses to which the pool connects; any address without a rule."""
    grace: float = 60.0
    """How long a client that was replaced serves its running calls and streams. Calls end within 30 s."""


class Target:
    """The client and the health of one instance or cluster. Another object of the same name is another target."""

    def __init__(
        self,
        kind: TargetKind,
        name: str,
        reference: Reference,
        *,
        global_client: Client,
        clock: Clock,
        settings: PoolSettings,
        connect_slots: asyncio.Semaphore,
        metrics: TargetMetrics,
        on_change: Callable[[Health], None],
    ) -> None:
        """`global_client` reads the Secrets. All unreachable targets share `connect_slots`."""
        self.reference = reference
        self.health = Health(
            kind=kind,
            name=name,
            reachable=False,
            reason=Reason.CONNECTING,
            since=clock.wall(),
            message=_NOT_YET,
        )
        self._global_client = global_client
        self._clock = clock
        self._settings = settings
        self._connect_slots = connect_slots
        self.metrics = metrics
        self._on_change = on_change
        self._client: Client | None = None
        self._prober: Client | None = None
        self._in_use: tuple[str, str | None] | None = None  # the fingerprint and address of the client
        self._failures = 0
        self._read_failures = 0
        self._changed = asyncio.Event()

    def client(self) -> Client:
        if self._client is None or not self.health.reachable:
            raise self.health.not_connected()
        return self._client

    @property
    def credential_fingerprint(self) -> str | None:
        """The fingerprint of the kubeconfig that the client was made of."""
        return self._in_use[0] if self._in_use is not None else None

    def follow(self, reference: Reference) -> None:
        """Makes the target connect by another Secret or address."""
        self.reference = reference
        self.wake()

    def wake(self) -> None:
        """Makes the task read the Secret again, which may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Runs until it is cancelled; then the client is closed."""
        try:
            async with asyncio.TaskGroup() as retiring:
                while True:
                    try:
                        await run_in_task(self._keep_connected(retiring))
                    except Exception as error:  # noqa: BLE001 - a defect of ours must not close the clients of all targets
                        self._report(error)
                        await self._clock.sleep(_PAUSE_AFTER_DEFECT)
        finally:
            self.health = msgspec.structs.replace(
                self.health,
                reachable=False,
                reason=Reason.NOT_READ_YET,
                message="the pool does not follow it any more",
                error=None,
            )
            await self._drop_clients()

    async def _keep_connected(self, retiring: asyncio.TaskGroup) -> None:
        """Makes one round: reads the Secret, then probes until something changes."""
        self._changed.clear()
        retry = await self._connect(retiring)
        timer = None if retry is None else self._clock.call_later(retry, self.wake)
        try:
            async with asyncio.TaskGroup() as tasks:
                probing = tasks.create_task(self._probe_forever())
                await self._changed.wait()
                probing.cancel()
        finally:
            if timer is not None:
                timer.cancel()

    async def _connect(self, retiring: asyncio.TaskGroup) -> float | None:
        """Makes the client that the Secret describes. Returns a delay if the Secret must be read again by itself."""
        secret, endpoint = self.reference.secret, self.reference.endpoint
        if secret is None:
            await self._disconnect(
                Reason.NO_CREDENTIALS, "it has no credentials yet; they are written while it is created"
            )
            return None
        try:
            kubeconfig = await read_kubeconfig(self._global_client, secret)
            wanted = (fingerprint(kubeconfig), endpoint)
            if wanted != self._in_use:
                connection = await asyncio.to_thread(connection_from, kubeconfig, endpoint=endpoint)
                self._replace(connection, retiring)
                self._in_use = wanted
        except NotFound:
            await self._disconnect(
                Reason.SECRET_MISSING, f"Secret {NAMESPACE}/{secret} does not exist; create it with its kubeconfig"
            )
        except KubeconfigMissing as error:
            await self._disconnect(Reason.SECRET_MISSING, f"{error}; put the kubeconfig there")
        except ConfigError as error:
            await self._disconnect(Reason.KUBECONFIG_REFUSED, f"the kubeconfig in {NAMESPACE}/{secret}: {error}")
        except KubeError as error:
            # This is a fault of the global cluster: a connected target stays connected.
            self._read_failures += 1
            self.metrics.failed(Reason.SECRET_UNREADABLE)
            if self._client is None:
                self._update(reason=Reason.SECRET_UNREADABLE, message=f"Secret {NAMESPACE}/{secret}: {error}")
            return _BACKOFF.pause(self._read_failures)
        self._read_failures = 0
        return None

    def _replace(self, connection: Connection, retiring: asyncio.TaskGroup) -> None:
        rule = self._settings.addresses
        client = Client(
            connection,
            max_connections=self._settings.max_connections,
            max_streams=self._settings.max_streams,
            addresses=rule,
        )
        old, old_prober = self._client, self._prober
        self._client, self._prober = client, Client(connection, max_connections=1, addresses=rule)
        self._failures = 0
        if old is None or old_prober is None:
            self._update(reason=Reason.CONNECTING, message=_NOT_YET, error=None)
            return
        self.metrics.replacements.inc()
        log.info("new credentials are used", kind=self.health.kind.value, name=self.health.name)
        retiring.create_task(self._retire(old, old_prober))
        # Streams that must outlive the old client are started anew with this one.
        self._on_change(self.health)

    async def _retire(self, client: Client, prober: Client) -> None:
        try:
            await prober.close()
            await self._clock.sleep(self._settings.grace)
        finally:
            await client.close()

    async def _disconnect(self, reason: Reason, message: str) -> None:
        if reason is not Reason.NO_CREDENTIALS:
            self.metrics.failed(reason)
        self._update(reachable=False, reason=reason, message=message, error=None, latency=None)
        await self._drop_clients()

    async def _drop_clients(self) -> None:
        dropped = (self._prober, self._client)
        self._client = self._prober = self._in_use = None
        # The stack closes each of them, even when this is cancelled while the first is being closed. It begins with the
        # last, the client that callers may have kept: closing the prober can take two seconds.
        async with AsyncExitStack() as closing:
            for client in dropped:
                if client is not None:
                    closing.push_async_callback(client.close)

    async def _probe_forever(self) -> None:
        while self._prober is not None:
            if self.health.reachable:
                await self._probe(self._prober)
            else:
                async with self._connect_slots:
                    await self._probe(self._prober)
            await self._clock.sleep(jittered(self._pause()))

    def _pause(self) -> float:
        if 0 < self._failures < self._settings.failure_threshold:
            return self._settings.retry_interval
        healthy = self._settings.healthy_interval
        if healthy is not None and self.health.kind is TargetKind.CLUSTER and self.health.reachable:
            return healthy
        return self._settings.probe_interval

    async def _probe(self, prober: Client) -> None:
        """Reads the version: the cheapest call that needs the network, TLS and an accepted credential."""
        began, version = self._clock.now(), self.health.server_version
        try:
            version = (await prober.version(timeout=self._settings.probe_timeout)).git_version
        except Forbidden:
            pass  # the identity may not read the version, so its credential was accepted
        except KubeError as error:
            self._failed(error)
            return
        latency = self._clock.now() - began
        self._failures = 0
        self.metrics.latency.observe(latency)
        self._update(
            reachable=True, reason=Reason.ANSWERS, message="", error=None, latency=latency, server_version=version
        )

    def _failed(self, error: KubeError) -> None:
        reason = Reason.of(error)
        self._failures += 1
        self.metrics.failed(reason)
        # Only the message is kept: the traceback would keep the whole call in memory.
        error = error.with_traceback(None)
        error.__cause__ = error.__context__ = None
        if self.health.reachable and self._failures < self._settings.failure_threshold:
            self._update(error=error)
        else:
            self._update(reachable=False, reason=reason, message=str(error), error=error)

    def _report(self, error: Exception) -> None:
        """Logs where a defect happened, and nothing else: its message and the local variables may be credentials."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        log.error(
            "a target of the pool failed",
            kind=self.health.kind.value,
            name=self.health.name,
            error=type(error).__name__,
            trace="".join(traceback.format_tb(error.__traceback__)),
        )

    def _update(self, **changes: Any) -> None:
        before = self.health
        after = msgspec.structs.replace(before, **changes)
        if after.reachable != before.reachable:
            after = msgspec.structs.replace(after, since=self._clock.wall())
        self.health = after
        self.metrics.connected.set(after.reachable)
        if (after.reachable, after.reason) != (before.reachable, before.reason):
            log.info(
                "target changed",
                kind=after.kind.value,
                name=after.name,
                reachable=after.reachable,
                reason=after.reason.value,
                why=after.message,
            )
            self._on_change(after)
