"""Writes the numbers of an instance into its status: when they have changed, and not more often than once a second.

A key is an instance. It is woken by the picture; nothing is computed or written for an instance in which nothing
happens.
"""

import msgspec

from kairship.controllers.global_cluster import INSTANCE, GlobalCluster, no_key
from kairship.controllers.statistics.picture import Pictures
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
    own_key,
)
from kairship.resources import InstanceStatus, Writer
from kairship.resources.instance_status import Summary

NAME = Writer.STATISTICS.value.removeprefix("kairship-")
_PAUSE = 1.0
_STALE = 0.2


def statistics_controller(cluster: GlobalCluster, *, pictures: Pictures, clock: Clock) -> Controller:
    statistics = Statistics(cluster, pictures, clock)
    return Controller(
        name=NAME,
        watches=(Watch(cluster.wanted, own_key), Watch(cluster.observed, no_key)),
        reconcile=statistics.reconcile,
        workers=4,
        timeout=30.0,
        retries=RetryPolicy(backoff=Backoff(0.5, 10.0)),
    )


class Statistics:
    def __init__(self, cluster: GlobalCluster, pictures: Pictures, clock: Clock) -> None:
        self._cluster = cluster
        self._pictures = pictures
        self._clock = clock
        self._written: dict[str, float] = {}
        self._replaced: dict[str, str] = {}  # the revision that the last write took the place of

    async def reconcile(self, context: Context, key: Key) -> Result:
        instance, picture = self._cluster.observed.store.get(key.name), self._pictures.get(key.name)
        if instance is None:
            self._written.pop(key.name, None)
            self._replaced.pop(key.name, None)
            return DONE
        if picture is None or instance.metadata.deletion_timestamp is not None:
            return DONE
        due = self._written.get(key.name, float("-inf")) + _PAUSE
        if due > self._clock.now():
            return RetryAfter(due - self._clock.now())
        if instance.metadata.resource_version == self._replaced.get(key.name):
            # Compared with what was before the last write, numbers that are back would be lost.
            return RetryAfter(_STALE)
        summary = picture.summary(self._clock.wall())
        if same_numbers(summary, instance.status.summary):
            return DONE
        if not await context.owner.apply_status(INSTANCE, instance.metadata, InstanceStatus(summary=summary)):
            return RetryAfter(_STALE)
        self._written[key.name] = self._clock.now()
        self._replaced[key.name] = instance.metadata.resource_version
        return DONE


def same_numbers(new: Summary, old: Summary | None) -> bool:
    """Whether nothing but the time is another one."""
    return old is not None and msgspec.structs.replace(new, observed_at=old.observed_at) == old
