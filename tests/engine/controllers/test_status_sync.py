"""Faults of an instance show in its status within seconds and disappear again, on the real engine.

Another instance hangs all the time: it must not delay the first one.
"""

import os
import signal
import time
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing
from math import inf

import pytest
from support.hanging import hanging
from support.managed import ManagedInstance, all_of, is_now, leading, settled, steps_of
from support.waiting import PATIENCE

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.status_sync import reconciler
from kairship.controllers.status_sync.damping import Damper, Thresholds
from kairship.controlplane import karmada
from kairship.kube import Client, Object, kinds
from kairship.resources import Instance, InstanceCondition, InstanceReason, find_condition

SHOWN_WITHIN = 10.0
READY, REACHABLE, MEMBERS = InstanceCondition.READY, InstanceCondition.REACHABLE, InstanceCondition.MEMBERS_REACHABLE


@pytest.fixture
async def instance(managed: ManagedInstance) -> AsyncIterator[ManagedInstance]:
    """A running instance, while another one hangs."""
    async with Client(managed.world.connection) as client, hanging(managed.world, client):
        managed.client = client
        if not managed.uid:
            on = {"enabled": True}
            await managed.create(search=on, metricsAdapter=on, descheduler=on)
        async with steps_of(managed) as steps, leading(managed.world):
            # A new leader reconciles the instance once, and changes its status until then.
            await managed.until(lambda found: "retire" in steps and settled(found) and is_well(found))
            yield managed


def is_well(instance: Instance) -> bool:
    ready = find_condition(instance.status.conditions, READY)
    return ready is not None and ready.reason == InstanceReason.AS_EXPECTED and instance.status.state == "RUNNING"


def is_degraded(instance: Instance, kinds: Collection[InstanceCondition]) -> bool:
    """Whether the instance can be used although these components are ill, and says so."""
    ready = find_condition(instance.status.conditions, READY)
    return (
        ready is not None
        and (ready.status, ready.reason, instance.status.state) == ("True", InstanceReason.DEGRADED, "RUNNING")
        and all(kind in ready.message for kind in kinds)
    )


async def shows(instance: ManagedInstance, *kinds: InstanceCondition) -> Instance:
    """Returns when all of these are false."""
    return await instance.until(all_of(*(is_now(kind, "False") for kind in kinds)))


async def test_a_component_that_stops_shows_and_the_instance_is_degraded(instance: ManagedInstance) -> None:
    faulty = {
        karmada.SCHEDULER: InstanceCondition.SCHEDULER_HEALTHY,
        karmada.CONTROLLER_MANAGER: InstanceCondition.CONTROLLER_MANAGER_HEALTHY,
        "kube-controller-manager": InstanceCondition.KUBE_CONTROLLER_MANAGER_HEALTHY,
        karmada.WEBHOOK: InstanceCondition.WEBHOOK_HEALTHY,
        karmada.AGGREGATED_APISERVER: InstanceCondition.AGGREGATED_API_SERVER_HEALTHY,
        karmada.SEARCH: InstanceCondition.SEARCH_HEALTHY,
        karmada.METRICS_ADAPTER: InstanceCondition.METRICS_ADAPTER_HEALTHY,
        karmada.DESCHEDULER: InstanceCondition.DESCHEDULER_HEALTHY,
    }
    supervisor, names = instance.world.plane.supervisor, [f"{instance.group}/{name}" for name in faulty]
    await supervisor.stop(*names)
    await shows(instance, *faulty.values())
    # Not at once: an API server that a busy machine keeps from answering makes the instance unavailable meanwhile.
    await instance.until(lambda found: is_degraded(found, faulty.values()))

    await supervisor.start(*names)
    await instance.until(is_well)


@pytest.mark.parametrize(
    ("component", "kind"),
    [("etcd", InstanceCondition.ETCD_HEALTHY), ("kube-apiserver", InstanceCondition.API_SERVER_HEALTHY)],
)
async def test_without_its_api_server_the_instance_is_unavailable(
    instance: ManagedInstance, component: str, kind: InstanceCondition
) -> None:
    supervisor = instance.world.plane.supervisor
    await supervisor.stop(f"{instance.group}/{component}")
    await shows(instance, kind)
    if component == "kube-apiserver":
        found = await instance.until(is_now(READY, "False"))
        assert found.status.state == "UNAVAILABLE"
    await supervisor.start(f"{instance.group}/{component}")
    await instance.until(is_well)


async def test_an_api_server_that_hangs_shows(instance: ManagedInstance) -> None:
    """The fault that takes longest to detect. One of three attempts must be in time: the machine may delay the
    others."""
    taken = [inf]
    while min(taken) >= SHOWN_WITHIN and len(taken) <= 3:
        pid = (await instance.pids())["kube-apiserver"]
        assert pid is not None
        begin = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        try:
            found = await shows(instance, REACHABLE, READY)
        finally:
            os.kill(pid, signal.SIGCONT)
        taken.append(time.monotonic() - begin)
        reachable = find_condition(found.status.conditions, REACHABLE)
        assert reachable is not None
        assert reachable.reason == InstanceReason.TIMED_OUT
        await instance.until(is_well)
    assert min(taken) < SHOWN_WITHIN, taken


async def test_a_member_that_karmada_does_not_reach_shows(instance: ManagedInstance) -> None:
    async with await instance.inside() as inside:
        await inside.create(kinds.CLUSTERS, {"metadata": {"name": "lost"}, "spec": {"syncMode": "Pull"}})
        found = await shows(instance, MEMBERS)
        members = find_condition(found.status.conditions, MEMBERS)
        assert members is not None
        assert (members.reason, members.message) == (InstanceReason.SOME_UNREACHABLE, "lost")
        await inside.delete(kinds.CLUSTERS, "lost")
    await instance.until(is_now(MEMBERS, "True"))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A component must be ill for a minute: how soon a crashed one is up again depends on the machine."""
    monkeypatch.setattr(reconciler, "Damper", lambda _, clock: Damper(Thresholds(worse=60.0), clock))


@pytest.mark.usefixtures("patient")
async def test_nothing_is_written_while_nothing_changes_and_a_crash_in_passing_is_no_change(
    instance: ManagedInstance,
) -> None:
    """One of three crashes must pass in silence. In the first seconds of a leader its numbers may be written, and the
    API server may be too busy to answer."""
    heard = [await written_around_a_crash(instance)]
    while heard[-1] and len(heard) < 3:
        heard.append(await written_around_a_crash(instance))
    assert heard[-1] == []


async def written_around_a_crash(instance: ManagedInstance) -> list[Object]:
    """What is written into the instance while its scheduler is killed and returns."""
    await instance.world.plane.supervisor.wait_ready(f"{instance.group}/{karmada.SCHEDULER}", timeout=PATIENCE)
    found = await instance.get()
    pid = (await instance.pids())[karmada.SCHEDULER]
    assert pid is not None
    watch = instance.client.watch(
        INSTANCE,
        resource_version=found.metadata.resource_version,
        field_selector=f"metadata.name={instance.name}",
        server_timeout=6,
        bookmarks=False,
    )
    os.kill(pid, signal.SIGKILL)
    begin = time.monotonic()
    async with aclosing(watch) as events:
        written = [event.object async for event in events]
    assert time.monotonic() - begin > 4, "the watch must have lasted for several looks"
    assert (await instance.pids())[karmada.SCHEDULER] != pid
    return written
