"""When Works that Karmada does not apply are requeued."""

from typing import Any, cast

from support.reconcile import FakeClock

from kairship.controllers.access.work_requeue import PATIENCE, WorkRequeue
from kairship.controllers.instance_cache import Conditions, InstanceCache, KarmadaCluster, KarmadaCondition, OwnWork
from kairship.kube import Client
from kairship.reconcile import Context, Metadata, ObjectName, Store


def conditions(kind: str, status: str) -> Conditions:
    return Conditions((KarmadaCondition(type=kind, status=status),))


class Reflected:
    def __init__(self) -> None:
        self.store: Store[Any] = Store()


class Scene:
    """An instance with one member, and what was patched in it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.works, self.clusters = Reflected(), Reflected()
        self.requeued: list[tuple[str, object]] = []
        self.requeue = WorkRequeue(self.clock)
        self.member(ready=True)

    def member(self, *, ready: bool) -> None:
        status = conditions("Ready", "True" if ready else "False")
        self.clusters.store.put(KarmadaCluster(Metadata("east"), status=status))

    def work(self, name: str, *, applied: bool, going: bool = False) -> None:
        metadata = Metadata(name, "karmada-es-east", uid=name, deletion_timestamp="now" if going else None)
        self.works.store.put(OwnWork(metadata, status=conditions("Applied", str(applied))))

    async def patch(self, _: object, name: str, patch: dict[str, Any], **__: object) -> None:
        self.requeued.append((name, patch["spec"]["suspendDispatching"]))

    async def reconcile(self, *, after: float = 0.0) -> bool:
        await self.clock.advance(after)
        self.requeued.clear()
        context = cast("Context", Quiet())
        return await self.requeue.requeue_stuck(context, cast("Client", self), cast("InstanceCache", self))


class Quiet:
    """The context of a leading process, with a log that drops everything."""

    term = None

    def __init__(self) -> None:
        self.log = self

    def info(self, *_: object, **__: object) -> None: ...


async def test_stuck_works_are_requeued_less_and_less_often() -> None:
    scene = Scene()
    scene.work("fine", applied=True)
    scene.work("late", applied=False)
    scene.work("going", applied=True, going=True)
    assert await scene.reconcile()
    assert scene.requeued == []
    assert await scene.reconcile(after=PATIENCE)
    assert sorted(scene.requeued) == [("going", False), ("late", False)]
    await scene.reconcile(after=PATIENCE)
    assert scene.requeued == []
    await scene.reconcile(after=PATIENCE)
    assert len(scene.requeued) == 2
    scene.work("late", applied=True)
    scene.works.store.remove(ObjectName("karmada-es-east", "going"))
    assert not await scene.reconcile(after=1000)
    assert scene.requeued == []


async def test_all_works_of_a_member_that_is_back_are_requeued_at_once() -> None:
    scene = Scene()
    scene.member(ready=False)
    scene.work("fine", applied=True)
    scene.work("late", applied=False)
    assert not await scene.reconcile()
    assert not await scene.reconcile(after=1000)
    assert scene.requeued == []
    scene.member(ready=True)
    assert await scene.reconcile()
    assert sorted(scene.requeued) == [("fine", False), ("late", False)]
    await scene.reconcile()
    assert scene.requeued == []
