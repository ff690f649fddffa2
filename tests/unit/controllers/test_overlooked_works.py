"""Rights that are on their way into members, and when Karmada is shown them again."""

from typing import Any, cast

from kairship.controllers.access.overlooked import PATIENCE, Overlooked
from kairship.controllers.inside import Conditions, Inside, KarmadaCluster, KarmadaCondition, OwnWork
from kairship.kube import Client
from kairship.reconcile import Context, Metadata, ObjectName, Store
from kairship.reconcile.testing import FakeClock


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
        self.shown: list[tuple[str, object]] = []
        self.overlooked = Overlooked(self.clock)
        self.member(ready=True)

    def member(self, *, ready: bool) -> None:
        status = conditions("Ready", "True" if ready else "False")
        self.clusters.store.put(KarmadaCluster(Metadata("east"), status=status))

    def work(self, name: str, *, applied: bool, going: bool = False) -> None:
        metadata = Metadata(name, "karmada-es-east", uid=name, deletion_timestamp="now" if going else None)
        self.works.store.put(OwnWork(metadata, status=conditions("Applied", str(applied))))

    async def patch(self, _: object, name: str, patch: dict[str, Any], **__: object) -> None:
        self.shown.append((name, patch["spec"]["suspendDispatching"]))

    async def look(self, *, after: float = 0.0) -> bool:
        await self.clock.advance(after)
        self.shown.clear()
        context = cast("Context", Quiet())
        return await self.overlooked.show_again(context, cast("Client", self), cast("Inside", self))


class Quiet:
    """The context of a process that leads, and whose log nobody reads."""

    term = None

    def __init__(self) -> None:
        self.log = self

    def info(self, *_: object, **__: object) -> None: ...


async def test_what_karmada_does_not_come_to_is_shown_again_less_and_less_often() -> None:
    scene = Scene()
    scene.work("fine", applied=True)
    scene.work("late", applied=False)
    scene.work("going", applied=True, going=True)
    assert await scene.look()
    assert scene.shown == []
    assert await scene.look(after=PATIENCE)
    assert sorted(scene.shown) == [("going", False), ("late", False)]
    await scene.look(after=PATIENCE)
    assert scene.shown == []
    await scene.look(after=PATIENCE)
    assert len(scene.shown) == 2
    scene.work("late", applied=True)
    scene.works.store.remove(ObjectName("karmada-es-east", "going"))
    assert not await scene.look(after=1000)
    assert scene.shown == []


async def test_of_a_member_that_is_back_everything_is_shown_at_once() -> None:
    scene = Scene()
    scene.member(ready=False)
    scene.work("fine", applied=True)
    scene.work("late", applied=False)
    assert not await scene.look()
    assert not await scene.look(after=1000)
    assert scene.shown == []
    scene.member(ready=True)
    assert await scene.look()
    assert sorted(scene.shown) == [("fine", False), ("late", False)]
    await scene.look()
    assert scene.shown == []
