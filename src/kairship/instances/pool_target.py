"""One target of the pool: its client, kept in step with its Secret, and its health.

One task runs it, and nothing in it waits for another target. It reads the Secret, makes the client and probes until
something changes, then begins again. A change interrupts a probe, however long that hangs. Reading `client` and
`health` never waits. Probes have a connection of their own: callers who use all of theirs must not make a target look
dead.

A client that was replaced serves the calls that run in it for a while longer. One whose credential was taken away,
because the Secret or the object is gone or the kubeconfig is refused, is closed at once.
"""

import asyncio
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import structlog

from kairship.instances.pool_health import Health, Reason, TargetKind
from kairship.instances.pool_metrics import TargetMetrics
from kairship.instances.pool_sources import (
    KubeconfigMissing,
    Reference,
    connection_from,
    fingerprint,
    read_kubeconfig,
)
from kairship.kube import AddressRule, Client, ConfigError, Connection, Forbidden, KubeError, NotFound
from kairship.reconcile import Backoff, Clock, jittered
from kairship.resources import NAMESPACE

log = structlog.get_logger(__name__)

_BACKOFF = Backoff(0.5, 30.0)
_AFTER_A_DEFECT = 10.0
_NOT_YET = "it has not answered yet; try again in a moment"


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How targets are used and watched over. Times in seconds.

    With these a target that hangs, which is the slowest of all faults to see, counts as unreachable within 7 s: whoever
    makes a condition of it has 3 s left of the 10 in which a fault must show.
    """

    max_connections: int = 16
    """Calls to one target at the same time; more wait for their turn. Streams have a bound of their own."""
    max_streams: int = 4096
    """Watches and what is passed on piece by piece; whoever hands out the client bounds them for its callers."""
    probe_interval: float = 2.0
    calm_interval: float | None = None
    """Until the next probe of a cluster that answers, if that is another: for those who have many and whom nobody asks
    how they are. With 5 s one that hangs is still seen within 10."""
    probe_timeout: float = 2.0
    connecting: int = 32
    """So many targets that cannot be used are tried at the same time. With a thousand at once, as at the start, the
    work of connecting would make all of them too late, and so again and again."""
    retry_interval: float = 0.5
    """Until the next probe while failures are counted."""
    failure_threshold: int = 2
    """So many failures in a row make a target unreachable."""
    addresses: AddressRule | None = None
    """Where targets may be; without it, anywhere."""
    grace: float = 60.0
    """How long a client that was replaced serves what still runs in it. Calls end within 30 s."""


class Target:
    """Made for one object: another one of the same name is another target."""

    def __init__(
        self,
        kind: TargetKind,
        name: str,
        reference: Reference,
        *,
        home: Client,
        clock: Clock,
        settings: PoolSettings,
        turns: asyncio.Semaphore,
        metrics: TargetMetrics,
        tell: Callable[[Health], None],
    ) -> None:
        """`home` is the cluster that has the Secrets; `turns` are shared by all targets that cannot be used."""
        self.reference = reference
        self.health = Health(
            kind=kind,
            name=name,
            reachable=False,
            reason=Reason.CONNECTING,
            since=clock.wall(),
            message=_NOT_YET,
        )
        self._home = home
        self._clock = clock
        self._settings = settings
        self._turns = turns
        self.metrics = metrics
        self._tell = tell
        self._client: Client | None = None
        self._prober: Client | None = None
        self._in_use: tuple[str, str | None] | None = None  # fingerprint and address that the client was made of
        self._failures = 0
        self._unread = 0
        self._changed = asyncio.Event()

    def client(self) -> Client:
        if self._client is None or not self.health.reachable:
            raise self.health.refusal()
        return self._client

    @property
    def credential(self) -> str | None:
        """The fingerprint of the kubeconfig that the client was made of."""
        return self._in_use[0] if self._in_use is not None else None

    def follow(self, reference: Reference) -> None:
        """The way to the target is another one now."""
        self.reference = reference
        self.wake()

    def wake(self) -> None:
        """The Secret may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled; then the client is closed."""
        try:
            async with asyncio.TaskGroup() as retiring:
                while True:
                    try:
                        await self._keep_connected(retiring)
                    except Exception as error:  # noqa: BLE001 - a defect of ours must not cost all others their clients
                        self._report(error)
                        await self._clock.sleep(_AFTER_A_DEFECT)
        finally:
            self.health = msgspec.structs.replace(
                self.health,
                reachable=False,
                reason=Reason.NOT_READ_YET,
                message="it is not followed any more",
                error=None,
            )
            await self._drop_clients()

    async def _keep_connected(self, retiring: asyncio.TaskGroup) -> None:
        """One round: read the Secret, then probe until something changes."""
        self._changed.clear()
        retry = await self._connect(retiring)
        timer = None if retry is None else self._clock.call_later(retry, self.wake)
        try:
            async with asyncio.TaskGroup() as tasks:
                probing = tasks.create_task(self._probe_for_ever())
                await self._changed.wait()
                probing.cancel()
        finally:
            if timer is not None:
                timer.cancel()

    async def _connect(self, retiring: asyncio.TaskGroup) -> float | None:
        """Bring the client in step with the Secret. Returns when to try again, if a change of it will not tell."""
        secret, endpoint = self.reference.secret, self.reference.endpoint
        if secret is None:
            await self._disconnect(
                Reason.NO_CREDENTIALS, "it has no credentials yet; they come in the course of creation"
            )
            return None
        try:
            kubeconfig = await read_kubeconfig(self._home, secret)
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
            # The global cluster's trouble. What is connected stays so.
            self._unread += 1
            self.metrics.failed(Reason.SECRET_UNREADABLE)
            if self._client is None:
                self._update(reason=Reason.SECRET_UNREADABLE, message=f"Secret {NAMESPACE}/{secret}: {error}")
            return _BACKOFF.pause(self._unread)
        self._unread = 0
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
        # Streams that should outlive the old client begin anew with this one.
        self._tell(self.health)

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
        dropped = (self._client, self._prober)
        self._client = self._prober = self._in_use = None
        # Each of them, also when this is cancelled while the first is being closed.
        async with AsyncExitStack() as closing:
            for client in dropped:
                if client is not None:
                    closing.push_async_callback(client.close)

    async def _probe_for_ever(self) -> None:
        while self._prober is not None:
            if self.health.reachable:
                await self._probe(self._prober)
            else:
                async with self._turns:
                    await self._probe(self._prober)
            await self._clock.sleep(jittered(self._pause()))

    def _pause(self) -> float:
        if 0 < self._failures < self._settings.failure_threshold:
            return self._settings.retry_interval
        calm = self._settings.calm_interval
        if calm is not None and self.health.kind is TargetKind.CLUSTER and self.health.reachable:
            return calm
        return self._settings.probe_interval

    async def _probe(self, prober: Client) -> None:
        """Ask for the version: the cheapest call that needs network, trust and an accepted credential."""
        began, version = self._clock.now(), self.health.server_version
        try:
            version = (await prober.version(timeout=self._settings.probe_timeout)).git_version
        except Forbidden:
            pass  # who may not ask for the version has been recognised all the same
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
        # Only what it says is kept: with its traceback it would keep the whole call in memory.
        error = error.with_traceback(None)
        error.__cause__ = error.__context__ = None
        if self.health.reachable and self._failures < self._settings.failure_threshold:
            self._update(error=error)
        else:
            self._update(reachable=False, reason=reason, message=str(error), error=error)

    def _report(self, error: Exception) -> None:
        """Where it happened, and nothing else: what it says, and the variables on the way, may be credentials."""
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
            self._tell(after)
