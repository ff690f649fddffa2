"""The history on both databases: slots that are overwritten and outlive a restart, and the points made of them."""

import pytest
from support.index_stores import Store

from kairship.gen.kairship.kpanda.v1alpha1.history_pb import Measure
from kairship.index.history import COARSE, FINE, Slot, Span, timeline

NOW = 1_800_000_000
DAY = 24 * 3600


async def test_the_last_hour_finely_the_last_month_coarsely_and_nothing_beyond(store: Store) -> None:
    begin = NOW - 40 * DAY
    for at in range(begin, NOW - 3600, 6 * 3600):
        await store.history().record(
            at,
            {"it": {Measure.NODES: 3.0}, "gone": {Measure.NODES: 1.0}}
            if at < NOW - 35 * DAY
            else {"it": {Measure.NODES: 3.0}},
        )
    for at in range(NOW - 2 * 3600, NOW, 10):
        await store.history().record(at, {"it": {Measure.NODES: 4.0}})
    fine = await store.history().read("it", FINE, since=0, until=NOW)
    coarse = await store.history().read("it", COARSE, since=0, until=NOW)
    assert len(fine) == FINE.size
    assert NOW - fine[0].begin == FINE.seconds
    assert all(slot.cells[Measure.NODES].count == 3 for slot in fine)
    assert NOW - 32 * DAY < coarse[0].begin < NOW - 30 * DAY
    assert coarse[-1].cells[Measure.NODES].most == 4.0
    assert await store.history().read("gone", COARSE, since=0, until=NOW) == []
    assert await store.history().read("it' OR 1=1 --", COARSE, since=0, until=NOW) == []


async def test_a_slot_has_the_mean_the_least_and_the_most(store: Store) -> None:
    for second, value in enumerate((4.0, 1.0, 7.0)):
        await store.history().record(NOW + second, {"it": {Measure.CPU_USED: value}})
    await store.history().record(NOW + 60, {"it": {Measure.PODS: 9.0}})
    slots = await store.history().read("it", FINE, since=NOW - 100, until=NOW + 100)
    span = Span.of(since=NOW - 100, until=0, step=0, now=NOW + 61)
    found = timeline(slots, span, [Measure.CPU_USED, Measure.PODS, Measure.NODES])
    assert found.step == 30
    [cpu] = found.series[Measure.CPU_USED]
    assert (cpu.time, cpu.value, cpu.least, cpu.most) == (NOW + 30, 4.0, 1.0, 7.0)
    assert [point.value for point in found.series[Measure.PODS]] == [9.0]
    assert found.series[Measure.NODES] == []


async def test_before_the_first_moment_there_is_nothing(store: Store) -> None:
    assert await store.history().read("it", FINE, since=0, until=NOW) == []


@pytest.mark.parametrize(
    ("asked", "step", "tier"),
    [
        ({"since": 0, "until": 0, "step": 0}, 30, FINE),
        ({"since": NOW - 600, "until": 0, "step": 45}, 60, FINE),
        ({"since": NOW - DAY, "until": 0, "step": 0}, 1800, COARSE),
        ({"since": NOW - 31 * DAY, "until": 0, "step": 30}, 3600, COARSE),
        ({"since": 1, "until": NOW + 10**9, "step": 86400}, 86400, COARSE),
    ],
)
def test_steps_fit_what_is_kept(asked: dict[str, int], step: int, tier: object) -> None:
    span = Span.of(**asked, now=NOW)
    assert (span.step, span.tier) == (step, tier)
    assert (span.until - span.since) / span.step <= 1000
    assert span.until <= NOW + 1


def test_slots_are_put_together_to_larger_steps() -> None:
    slots = []
    for number in range(4):
        slot = Slot(NOW + 30 * number, {})
        slot.add({Measure.NODES: float(number)})
        slots.append(slot)
    span = Span.of(since=NOW, until=0, step=60, now=NOW + 119)
    points = timeline(slots, span, ()).series[Measure.NODES]
    assert [(point.time - NOW, point.value, point.least, point.most) for point in points] == [
        (60, 0.5, 0.0, 1.0),
        (120, 2.5, 2.0, 3.0),
    ]
