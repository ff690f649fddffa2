"""A watch on the objects of a cached kind: first all objects, then changes, as fast as the client takes them.

A client that is slower than the changes gets fewer of them: at most one change waits for each object, the latest. So a
client costs no more memory than the cached objects do. Everything runs in one event loop.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

import msgspec

from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.reconcile import Change, Reflector
from kairship.reconcile.cache.shapes import HasMetadata

T = TypeVar("T", bound=HasMetadata)


class WatchUpdate(msgspec.Struct, Generic[T], frozen=True):
    type: WatchEventType
    object: T | None = None
    """For DELETED the last known state of the object; None for SYNCED, which follows the initial objects."""


async def watch_cache(reflector: Reflector[T], *, wanted: Callable[[T], bool]) -> AsyncGenerator[WatchUpdate[T]]:
    """Yields updates of the wanted objects, without end. Wrap it in `aclosing`."""
    pending: dict[str, Change[T]] = {}
    some_pending = asyncio.Event()

    def on_change(change: Change[T]) -> None:
        obj = change.new or change.old
        if obj is not None:
            earlier = pending.pop(obj.metadata.name, None)
            pending[obj.metadata.name] = Change(earlier.old, change.new) if earlier else change
            some_pending.set()

    await reflector.wait_synced()
    unsubscribe = reflector.subscribe(on_change)
    sent: dict[str, T] = {}
    try:
        synced = False
        while True:
            for name in list(pending):
                change = pending.pop(name, None)
                for update in _updates(sent.get(name), _if(wanted, change.new) if change else None):
                    if update.type is WatchEventType.DELETED:
                        sent.pop(name, None)
                    elif update.object is not None:
                        sent[name] = update.object
                    yield update
            if not synced:
                synced = True
                yield WatchUpdate(WatchEventType.SYNCED)
            if not pending:
                some_pending.clear()
                await some_pending.wait()
    finally:
        unsubscribe()


def _if(wanted: Callable[[T], bool], obj: T | None) -> T | None:
    return obj if obj is not None and wanted(obj) else None


def _updates(before: T | None, now: T | None) -> list[WatchUpdate[T]]:
    if now is None:
        return [WatchUpdate(WatchEventType.DELETED, before)] if before is not None else []
    if before is None:
        return [WatchUpdate(WatchEventType.ADDED, now)]
    if before.metadata.uid != now.metadata.uid:
        return [WatchUpdate(WatchEventType.DELETED, before), WatchUpdate(WatchEventType.ADDED, now)]
    return [WatchUpdate(WatchEventType.MODIFIED, now)]
