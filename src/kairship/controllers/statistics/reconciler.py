"""Writes the numbers of an instance into its status when they have changed, at most once a second.

A key is an instance. Its counter enqueues it; for an instance in which nothing happens nothing is computed or written.
"""

import msgspec

from kairship.controllers.global_cluster import INSTANCE, GlobalCluster, instance_key, no_key
from kairship.controllers.statistics.instance_counter import InstanceCounters
from kairship.reconcile import (
    DONE,
    STALE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Notifications,
    Result,
    RetryAfter,
    RetryPolicy,
    Watch,
    own_key,
)
from kairship.resources import InstanceStatus, Writer
from kairship.resources.instance_status import Summary

NAME = Writer.STATISTICS.value.removeprefix("kairship-")
_PAUSE = 1.0


def statistics_controller(cluster: GlobalCluster, *, counters: InstanceCounters, clock: Clock) -> Controller:
    statistics = Statistics(cluster, counters, clock)
    return Controller(
        name=NAME,
        watches=(Watch(cluster.wanted, own_key), Watch(cluster.observed, no_key)),
        sources=(Notifications(counters.subscribe, lambda instance: (instance_key(instance),)),),
        reconcile=statistics.reconcile,
        workers=4,
        timeout=30.0,
        retries=RetryPolicy(backoff=Backoff(0.5, 10.0)),
    )


class Statistics:
    """Reconciles the summary in the status of instances."""

    def __init__(self, cluster: GlobalCluster, counters: InstanceCounters, clock: Clock) -> None:
        self._cluster = cluster
        self._counters = counters
        self._clock = clock
        self._written: dict[str, float] = {}
        self._replaced: dict[str, str] = {}  # the revision that the last write replaced

    async def reconcile(self, context: Context, key: Key) -> Result:
        instance, counter = self._cluster.observed.store.get(key.name), self._counters.get(key.name)
        if instance is None:
            self._written.pop(key.name, None)
            self._replaced.pop(key.name, None)
            return DONE
        if counter is None or instance.metadata.deletion_timestamp is not None:
            return DONE
        due = self._written.get(key.name, float("-inf")) + _PAUSE
        if due > self._clock.now():
            return RetryAfter(due - self._clock.now())
        if instance.metadata.resource_version == self._replaced.get(key.name):
            # The cache is behind the last write: numbers that have changed back since would look unchanged.
            return STALE
        summary = counter.summary(self._clock.wall())
        if same_numbers(summary, instance.status.summary):
            return DONE
        if not await context.owner.apply_status(INSTANCE, instance.metadata, InstanceStatus(summary=summary)):
            return STALE
        self._written[key.name] = self._clock.now()
        self._replaced[key.name] = instance.metadata.resource_version
        return DONE


def same_numbers(new: Summary, old: Summary | None) -> bool:
    """Whether the two differ in their time only."""
    return old is not None and msgspec.structs.replace(new, observed_at=old.observed_at) == old
