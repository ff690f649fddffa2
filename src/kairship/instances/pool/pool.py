"""A pool of clients: one for every instance and every registered cluster, by name.

    pool = Pool(client, clock=clock, metrics=metrics)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pool.run())
        await pool.wait_synced()
        await pool.instance("production").list(kinds.CLUSTERS)

`run` follows instances, clusters and Secrets of the global cluster with one reflector each, and gives every target a
task, a client and connections of its own: a fault of one target never affects another. Everything runs in one event
loop. `instance` and `cluster` do no I/O: they return a client that works, or raise `NotConnected` with the reason.

Get a client for each call or stream and do not keep it: then a change of credentials goes unnoticed. A client that was
replaced is closed some time later.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

import structlog

from kairship.instances.pool import sources
from kairship.instances.pool.health import Health, Reason, TargetKind
from kairship.instances.pool.metrics import PoolMetrics
from kairship.instances.pool.sources import ClusterShape, InstanceShape, Reference, SecretShape
from kairship.instances.pool.target import PoolSettings, Target
from kairship.kube import Client
from kairship.reconcile import Change, Clock, Metrics, Reflector

log = structlog.get_logger(__name__)

Listener = Callable[[Health], None]
"""Is called when a target becomes reachable or unreachable, when the reason changes, and when it has a new client. It
must not block."""


class Pool:
    """The clients of all targets."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        metrics: Metrics,
        pool_metrics: PoolMetrics | None = None,
        settings: PoolSettings | None = None,
        targets: Collection[TargetKind] = tuple(TargetKind),
    ) -> None:
        """`client` is that of the global cluster; `metrics` are those of the reflectors.

        Only targets of the kinds `targets` are followed and connected to.
        """
        self._client = client
        self._clock = clock
        self._metrics = pool_metrics or PoolMetrics()
        self._settings = settings or PoolSettings()
        self._connect_slots = asyncio.Semaphore(self._settings.max_connecting)
        self._instances = Reflector(client, sources.instances(), clock=clock, metrics=metrics)
        self._clusters = Reflector(client, sources.clusters(), clock=clock, metrics=metrics)
        self._secrets = Reflector(client, sources.secrets(), clock=clock, metrics=metrics)
        self._followed: list[Reflector[Any]] = [
            self._secrets,
            *([self._instances] if TargetKind.INSTANCE in targets else []),
            *([self._clusters] if TargetKind.CLUSTER in targets else []),
        ]
        self._targets: dict[tuple[TargetKind, str], Target] = {}
        self._running: dict[Target, asyncio.Task[None]] = {}
        self._users: dict[str, set[Target]] = {}  # the targets that use a Secret, by its name
        self._listeners: list[Listener] = []

    def instance(self, name: str) -> Client:
        return self._client_of(TargetKind.INSTANCE, name)

    def cluster(self, name: str) -> Client:
        return self._client_of(TargetKind.CLUSTER, name)

    def health(self, kind: TargetKind, name: str) -> Health:
        """Returns the health after the last probe. A target that does not exist is unreachable for that reason."""
        target = self._targets.get((kind, name))
        return target.health if target is not None else self._absent(kind, name)

    def credential_fingerprint(self, kind: TargetKind, name: str) -> str | None:
        """Returns the fingerprint of the kubeconfig of the target's present client."""
        target = self._targets.get((kind, name))
        return target.credential_fingerprint if target is not None else None

    def names(self, kind: TargetKind) -> list[str]:
        """Returns the names of all known targets of a kind, reachable or not."""
        return [name for known, name in self._targets if known is kind]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` on every change of any target from now on. Returns a function that ends the subscription."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def wait_synced(self) -> None:
        """Waits until all targets are known, whether or not they can be reached."""
        for reflector in self._followed:
            await reflector.wait_synced()

    async def run(self) -> None:
        """Runs until it is cancelled; then every client is closed. A pool runs only once."""
        async with asyncio.TaskGroup() as tasks:

            def on_change(kind: TargetKind, change: Change[InstanceShape] | Change[ClusterShape]) -> None:
                if change.new is None:
                    self._remove(kind, change.old.metadata.name if change.old else "")
                else:
                    self._put(tasks, kind, change.new.metadata.name, change.new.reference)

            self._instances.subscribe(lambda change: on_change(TargetKind.INSTANCE, change))
            self._clusters.subscribe(lambda change: on_change(TargetKind.CLUSTER, change))
            self._secrets.subscribe(self._on_secret_change)
            try:
                async with asyncio.TaskGroup() as following:
                    for reflector in self._followed:
                        following.create_task(reflector.run())
            finally:
                for target in self._targets.values():
                    target.metrics.remove()

    def _client_of(self, kind: TargetKind, name: str) -> Client:
        target = self._targets.get((kind, name))
        if target is None:
            raise self._absent(kind, name).not_connected()
        return target.client()

    def _absent(self, kind: TargetKind, name: str) -> Health:
        reflector = self._instances if kind is TargetKind.INSTANCE else self._clusters
        if reflector.synced:
            reason, message = Reason.UNKNOWN, f"there is no {kind} of this name"
        else:
            reason, message = Reason.NOT_READ_YET, f"the {kind}s have not been read yet; try again in a moment"
        return Health(kind=kind, name=name, reachable=False, reason=reason, since=self._clock.wall(), message=message)

    def _put(self, tasks: asyncio.TaskGroup, kind: TargetKind, name: str, reference: Reference) -> None:
        target = self._targets.get((kind, name))
        if target is not None and target.reference.uid != reference.uid:
            self._remove(kind, name)
            target = None
        if target is None:
            target = Target(
                kind,
                name,
                reference,
                global_client=self._client,
                clock=self._clock,
                settings=self._settings,
                connect_slots=self._connect_slots,
                metrics=self._metrics.target(kind, name),
                on_change=self._notify,
            )
            self._targets[kind, name] = target
            self._running[target] = tasks.create_task(target.run())
        elif target.reference != reference:
            self._remove_user(target)
            target.follow(reference)
        if reference.secret is not None:
            self._users.setdefault(reference.secret, set()).add(target)

    def _remove(self, kind: TargetKind, name: str) -> None:
        target = self._targets.pop((kind, name), None)
        if target is None:
            return
        self._remove_user(target)
        self._running.pop(target).cancel()
        # Not when its task ends: by then there may be another target of this name with series of its own.
        target.metrics.remove()
        self._notify(self._absent(kind, name))

    def _remove_user(self, target: Target) -> None:
        secret = target.reference.secret
        if secret is not None:
            users = self._users[secret]
            users.discard(target)
            if not users:
                del self._users[secret]

    def _on_secret_change(self, change: Change[SecretShape]) -> None:
        secret = change.new or change.old
        if secret is not None:
            for target in self._users.get(secret.metadata.name, ()):
                target.wake()

    def _notify(self, health: Health) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(health)
            except Exception:
                log.exception("a listener of the pool failed", kind=health.kind.value, name=health.name)
