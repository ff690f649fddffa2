"""Following a kind that is in memory: first all there is, then changes, as fast as the follower takes them.

A follower that is slower than the changes gets fewer of them: what waits for it is at most one change for each object,
the latest. So no follower costs more memory than the objects that there are.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

import msgspec

from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.reconcile import Change, Reflector
from kairship.reconcile.shapes import Shaped

T = TypeVar("T", bound=Shaped)


class News(msgspec.Struct, Generic[T], frozen=True):
    type: WatchEventType
    object: T | None = None
    """Of a deleted one, the last that was known. None when everything that there was has been told."""


async def follow_kind(reflector: Reflector[T], *, wanted: Callable[[T], bool]) -> AsyncGenerator[News[T]]:
    """Without end. Wrap it in `aclosing`."""
    waiting: dict[str, Change[T]] = {}
    some = asyncio.Event()

    def hear(change: Change[T]) -> None:
        about = change.new or change.old
        if about is not None:
            earlier = waiting.pop(about.metadata.name, None)
            waiting[about.metadata.name] = Change(earlier.old, change.new) if earlier else change
            some.set()

    await reflector.wait_synced()
    end = reflector.subscribe(hear)
    told: dict[str, T] = {}
    try:
        begun = False
        while True:
            for name in list(waiting):
                change = waiting.pop(name, None)
                for news in _news(told.get(name), _if(wanted, change.new) if change else None):
                    if news.type is WatchEventType.DELETED:
                        told.pop(name, None)
                    elif news.object is not None:
                        told[name] = news.object
                    yield news
            if not begun:
                begun = True
                yield News(WatchEventType.SYNCED)
            if not waiting:
                some.clear()
                await some.wait()
    finally:
        end()


def _if(wanted: Callable[[T], bool], obj: T | None) -> T | None:
    return obj if obj is not None and wanted(obj) else None


def _news(before: T | None, now: T | None) -> list[News[T]]:
    if now is None:
        return [News(WatchEventType.DELETED, before)] if before is not None else []
    if before is None:
        return [News(WatchEventType.ADDED, now)]
    if before.metadata.uid != now.metadata.uid:
        return [News(WatchEventType.DELETED, before), News(WatchEventType.ADDED, now)]
    return [News(WatchEventType.MODIFIED, now)]
