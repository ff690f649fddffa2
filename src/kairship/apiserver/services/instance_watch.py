"""Watches on objects in an instance that survive whatever happens to the instance and its credentials.

A client of the pool is good for one stream. When a stream is interrupted, the pool is asked for a client again. With
another client the watch begins anew; without one it ends with the reason, because the worst watch is one that is silent
because it is dead.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.kube import Object
from kairship.reconcile import (
    Changed,
    Clock,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    ObjectName,
    Selection,
    Step,
    list_and_watch,
)


async def watch_instance(
    clients: InstanceClients, instance: str, selection: Selection[Object], clock: Clock
) -> AsyncGenerator[Step[Object]]:
    """Yields the steps of `list_and_watch` without end. Raises an `ApiError` when the instance is out of reach."""
    while True:
        client = clients.instance(instance)
        async with aclosing(list_and_watch(client, selection, clock=clock)) as steps:
            async for step in steps:
                yield step
                if isinstance(step, Interrupted) and clients.instance(instance) is not client:
                    break


class Delta(NamedTuple):
    """What one step of a watch changes."""

    upserted: list[Object]
    """Objects that were added or modified."""
    deleted: list[ObjectName]
    synced: bool
    """Whether a list is complete with this step."""


class KnownObjects:
    """The objects of a stream of steps by resourceVersion, to find what changed during an interruption."""

    def __init__(self) -> None:
        self._versions: dict[ObjectName, str] = {}
        self._listed: set[ObjectName] | None = None

    def apply(self, step: Step[Object]) -> Delta:
        match step:
            case ListBegan():
                self._listed = set()
            case Listed(items):
                return Delta([obj for obj in items if self._put(obj)], [], False)
            case ListEnded():
                deleted = list(self._versions.keys() - (self._listed or set()))
                for name in deleted:
                    del self._versions[name]
                self._listed = None
                return Delta([], deleted, True)
            case Changed("DELETED", obj):
                self._versions.pop(object_key(obj), None)
                return Delta([], [object_key(obj)], False)
            case Changed(_, obj):
                self._put(obj)
                return Delta([obj], [], False)
            case _:
                pass
        return Delta([], [], False)

    def _put(self, obj: Object) -> bool:
        """Returns whether the object is new or has changed."""
        name, version = object_key(obj), str(obj["metadata"].get("resourceVersion"))
        if self._listed is not None:
            self._listed.add(name)
        changed = self._versions.get(name) != version
        self._versions[name] = version
        return changed


def object_key(obj: Object) -> ObjectName:
    return ObjectName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
