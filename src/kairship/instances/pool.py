"""The instance proxy: a client for every instance and every cluster, by name.

    pool = Pool(client, clock=clock, metrics=metrics)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pool.run())
        await pool.wait_synced()
        await pool.instance("production").list(kinds.CLUSTERS)

`run` follows instances, clusters and Secrets of the global cluster in one task each, and gives every target a task, a
client and connections of its own: the trouble of one never reaches another. Everything happens in one event loop.
Asking for a client does no I/O: it returns one that works, or raises `NotConnected` with the reason.

A client is for the next call or stream, not for keeping: ask again each time, and a change of credentials goes
unnoticed. One that is kept is closed some time after its replacement.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

import structlog

from kairship.instances import pool_sources
from kairship.instances.pool_health import Health, NotConnected, Reason, TargetKind
from kairship.instances.pool_metrics import PoolMetrics
from kairship.instances.pool_sources import ClusterShape, InstanceShape, Reference, SecretShape
from kairship.instances.pool_target import PoolSettings, Target
from kairship.kube import Client
from kairship.reconcile import Change, Clock, Metrics, Pace, Reflector

__all__ = ["Health", "Listener", "NotConnected", "Pool", "PoolMetrics", "PoolSettings", "Reason", "TargetKind"]

log = structlog.get_logger(__name__)

Listener = Callable[[Health], None]
"""Hears of a target that became reachable, unreachable, is so for another reason, or has another client. Must return at
once."""


class Pool:
    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        metrics: Metrics,
        pool_metrics: PoolMetrics | None = None,
        settings: PoolSettings | None = None,
        pace: Pace | None = None,
        targets: Collection[TargetKind] = tuple(TargetKind),
    ) -> None:
        """`client` is that of the global cluster; `metrics` are those of the reflectors. Others than `targets` are
        neither followed nor connected to."""
        self._client = client
        self._clock = clock
        self._metrics = pool_metrics or PoolMetrics()
        self._settings = settings or PoolSettings()
        self._turns = asyncio.Semaphore(self._settings.connecting)
        self._instances = Reflector(client, pool_sources.instances(), clock=clock, metrics=metrics, pace=pace)
        self._clusters = Reflector(client, pool_sources.clusters(), clock=clock, metrics=metrics, pace=pace)
        self._secrets = Reflector(client, pool_sources.secrets(), clock=clock, metrics=metrics, pace=pace)
        self._followed: list[Reflector[Any]] = [
            self._secrets,
            *([self._instances] if TargetKind.INSTANCE in targets else []),
            *([self._clusters] if TargetKind.CLUSTER in targets else []),
        ]
        self._targets: dict[tuple[TargetKind, str], Target] = {}
        self._running: dict[Target, asyncio.Task[None]] = {}
        self._users: dict[str, set[Target]] = {}  # who uses a Secret
        self._listeners: list[Listener] = []

    def instance(self, name: str) -> Client:
        return self._client_of(TargetKind.INSTANCE, name)

    def cluster(self, name: str) -> Client:
        return self._client_of(TargetKind.CLUSTER, name)

    def health(self, kind: TargetKind, name: str) -> Health:
        """How the target was when it was last seen. One that does not exist is unreachable for that reason."""
        target = self._targets.get((kind, name))
        return target.health if target is not None else self._absent(kind, name)

    def credential(self, kind: TargetKind, name: str) -> str | None:
        """The fingerprint of the kubeconfig by which the target is reached now."""
        target = self._targets.get((kind, name))
        return target.credential if target is not None else None

    def names(self, kind: TargetKind) -> list[str]:
        """Of every target of a kind that is known, reachable or not."""
        return [name for known, name in self._targets if known is kind]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """From now on `listener` hears of every change of any target. Returns how to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def wait_synced(self) -> None:
        """Until every target is known. Whether each can be reached is another matter."""
        for reflector in self._followed:
            await reflector.wait_synced()

    async def run(self) -> None:
        """Until cancelled; then every client is closed. Once only."""
        async with asyncio.TaskGroup() as tasks:

            def take(kind: TargetKind, change: Change[InstanceShape] | Change[ClusterShape]) -> None:
                if change.new is None:
                    self._remove(kind, change.old.metadata.name if change.old else "")
                else:
                    self._put(tasks, kind, change.new.metadata.name, change.new.reference)

            self._instances.subscribe(lambda change: take(TargetKind.INSTANCE, change))
            self._clusters.subscribe(lambda change: take(TargetKind.CLUSTER, change))
            self._secrets.subscribe(self._secret_changed)
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
            raise self._absent(kind, name).refusal()
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
                home=self._client,
                clock=self._clock,
                settings=self._settings,
                turns=self._turns,
                metrics=self._metrics.target(kind, name),
                tell=self._tell,
            )
            self._targets[kind, name] = target
            self._running[target] = tasks.create_task(target.run())
        elif target.reference != reference:
            self._forget_use(target)
            target.follow(reference)
        if reference.secret is not None:
            self._users.setdefault(reference.secret, set()).add(target)

    def _remove(self, kind: TargetKind, name: str) -> None:
        target = self._targets.pop((kind, name), None)
        if target is None:
            return
        self._forget_use(target)
        self._running.pop(target).cancel()
        # Now, and not when its task ends: by then there may be another target of this name with series of its own.
        target.metrics.remove()
        self._tell(self._absent(kind, name))

    def _forget_use(self, target: Target) -> None:
        secret = target.reference.secret
        if secret is not None:
            users = self._users[secret]
            users.discard(target)
            if not users:
                del self._users[secret]

    def _secret_changed(self, change: Change[SecretShape]) -> None:
        secret = change.new or change.old
        if secret is not None:
            for target in self._users.get(secret.metadata.name, ()):
                target.wake()

    def _tell(self, health: Health) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(health)
            except Exception:
                log.exception("a listener of the pool failed", kind=health.kind.value, name=health.name)
