"""Counting from changes, and exact sums."""

import datetime as dt
import random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from support.reconcile import FakeClock

from kairship.controllers.global_cluster import GlobalCluster, ObservedInstance
from kairship.controllers.statistics.cluster_sums import CountedCluster, sum_clusters
from kairship.controllers.statistics.instance_counter import WORKLOADS, InstanceCounters
from kairship.controllers.statistics.kind_counter import KindCounter
from kairship.controllers.statistics.readiness import READY, Workload
from kairship.controllers.statistics.reconciler import Statistics, same_numbers
from kairship.kube import kinds
from kairship.reconcile import DONE, Changed, Context, Key, ListBegan, Listed, ListEnded, Metadata, RetryAfter
from kairship.resources import DriverName, InstanceSpec, InstanceStatus, ReadyCount
from kairship.resources.instance_status import Summary

LOST = "2026-01-02T03:04:05Z"


def deployment(name: str, *, ready: bool, namespace: str = "default") -> Workload:
    content = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2},
        "status": {"readyReplicas": 2 if ready else 1},
    }
    return msgspec.convert(content, Workload)


def cluster(name: str, *, ready: bool | None = True, **status: Any) -> CountedCluster:
    conditions = [] if ready is None else [{"type": "Ready", "status": str(ready), "lastTransitionTime": LOST}]
    return msgspec.convert({"metadata": {"name": name}, "status": {"conditions": conditions, **status}}, CountedCluster)


def test_changes_add_up_to_what_a_list_would_show() -> None:
    """The counter agrees with a model, also after lists, and notifies exactly when a number changes."""
    chance = random.Random(7)  # noqa: S311 - to be repeated
    told: list[tuple[int, int]] = []
    counter = KindCounter(kinds.DEPLOYMENTS, lambda: told.append((counter.total, counter.ready)))
    counter.take(ListBegan())
    counter.take(ListEnded("1"))
    assert told == [(0, 0)]
    model: dict[str, Workload] = {}
    for _ in range(2000):
        name, ready = f"d-{chance.randrange(30)}", chance.random() < 0.7
        namespace = "karmada-system" if chance.random() < 0.1 else "default"
        key = f"{namespace}/{name}"
        before = (counter.total, counter.ready)
        if chance.random() < 0.3 and key in model:
            counter.take(Changed("DELETED", model.pop(key), "1"))
        else:
            kind = "MODIFIED" if key in model else "ADDED"
            model[key] = deployment(name, ready=ready, namespace=namespace)
            counter.take(Changed(kind, model[key], "1"))  # type: ignore[arg-type]
        if chance.random() < 0.02:
            counter.take(ListBegan())
            counter.take(Listed(list(model.values())))
            counter.take(ListEnded("1"))
        counted = [each for key, each in model.items() if key.startswith("default/")]
        assert (counter.total, counter.ready) == (len(counted), sum(READY["Deployment"](each) for each in counted))
        assert (told[-1] == (counter.total, counter.ready)) or before == (counter.total, counter.ready)


def test_numbers_are_those_of_the_last_whole_list() -> None:
    counter = KindCounter(kinds.DEPLOYMENTS, lambda: None)
    counter.take(ListBegan())
    counter.take(Listed([deployment("a", ready=True), deployment("b", ready=False)]))
    assert not counter.known
    counter.take(ListEnded("1"))
    assert (counter.total, counter.ready) == (2, 1)
    counter.take(ListBegan())
    counter.take(Listed([deployment("a", ready=True)]))
    assert (counter.total, counter.ready) == (2, 1)
    counter.take(ListEnded("2"))
    assert (counter.total, counter.ready) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "spec", "status", "ready"),
    [
        ("Deployment", {}, {"readyReplicas": 1}, True),
        ("Deployment", {}, {}, False),
        ("Deployment", {"replicas": 0}, {}, True),
        ("StatefulSet", {"replicas": 3}, {"readyReplicas": 2}, False),
        ("DaemonSet", {}, {}, False),
        ("DaemonSet", {}, {"desiredNumberScheduled": 2, "numberReady": 2}, True),
        ("Job", {}, {"conditions": [{"type": "Complete", "status": "True"}]}, True),
        ("Job", {}, {"conditions": [{"type": "Failed", "status": "True"}]}, False),
        ("CronJob", {"suspend": True}, {}, False),
        ("CronJob", {"suspend": False}, {}, True),
    ],
)
def test_when_a_workload_is_ready(kind: str, spec: dict[str, Any], status: dict[str, Any], ready: bool) -> None:
    workload = msgspec.convert({"metadata": {"name": "w"}, "spec": spec, "status": status}, Workload)
    assert READY[kind](workload) is ready


def test_every_workload_that_is_counted_can_be_ready() -> None:
    assert set(READY) == {kind.kind for kind in WORKLOADS}


def test_sums_are_exact_and_what_is_stale_stands_apart() -> None:
    def holds(cpu: str, memory: str, nodes: int) -> dict[str, Any]:
        return {
            "nodeSummary": {"totalNum": nodes, "readyNum": nodes - 1},
            "resourceSummary": {"allocatable": {"cpu": cpu, "memory": memory}, "allocated": {"cpu": "100m"}},
        }

    sums = sum_clusters(
        [
            cluster("a", **holds("100m", "1Gi", 2)),
            cluster("b", **holds("0.2", "1073741823", 3)),
            cluster("c", ready=False, **holds("7", "2Gi", 5)),
            cluster("new", ready=None),
        ]
    )
    assert (sums.count.total, sums.count.ready, sums.count.stale) == (4, 2, 1)
    assert sums.current.nodes == ReadyCount(total=5, ready=3)
    assert sums.current.allocatable == {"cpu": "300m", "memory": "2147483647"}
    assert sums.current.allocated == {"cpu": "200m"}
    assert sums.stale.allocatable == {"cpu": "7", "memory": "2Gi"}
    assert sums.stale_since == dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert sum_clusters([cluster("a")]).stale_since is None


def summary(number: int) -> Summary:
    sums = sum_clusters([])
    return Summary(
        observed_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        clusters=sums.count,
        current=sums.current,
        stale=sums.stale,
        resources={"ConfigMap": number},
    )


def test_time_alone_is_no_change() -> None:
    first = summary(0)
    later = msgspec.structs.replace(first, observed_at=dt.datetime(2026, 2, 2, tzinfo=dt.UTC))
    assert same_numbers(later, first)
    assert not same_numbers(msgspec.structs.replace(later, policies={"PropagationPolicy": 1}), first)
    assert not same_numbers(later, None)


def observed(revision: str, number: int) -> ObservedInstance:
    metadata = Metadata(name="one", resource_version=revision)
    spec = InstanceSpec(driver=DriverName.LOCAL)
    return ObservedInstance(metadata, spec, InstanceStatus(summary=summary(number)))


async def test_numbers_that_are_back_before_the_last_write_is_seen_are_written_too() -> None:
    """The cache of the instance is behind: it must not be taken for what is written."""
    clock, seen, now, written = FakeClock(), observed("1", 1), 2, list[int]()

    async def apply_status(_: object, read: Metadata, status: InstanceStatus) -> str:
        assert status.summary is not None
        written.append(status.summary.resources["ConfigMap"])
        return "next"

    counted = SimpleNamespace(summary=lambda _: summary(now))
    statistics = Statistics(
        cast("GlobalCluster", SimpleNamespace(observed=SimpleNamespace(store=SimpleNamespace(get=lambda _: seen)))),
        cast("InstanceCounters", SimpleNamespace(get=lambda _: counted)),
        clock,
    )
    context = cast("Context", SimpleNamespace(owner=SimpleNamespace(apply_status=apply_status)))
    assert await statistics.reconcile(context, Key("one")) is DONE
    now = 1
    clock.pass_time(5)
    assert isinstance(await statistics.reconcile(context, Key("one")), RetryAfter)
    seen = observed("2", 2)
    assert await statistics.reconcile(context, Key("one")) is DONE
    assert written == [2, 1]
