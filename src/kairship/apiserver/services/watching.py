"""Following objects in an instance, through everything that happens to the instance and its credentials.

A client of the pool is for one stream. When a stream is interrupted the pool is asked again: with another client the
following begins anew with it, and without one it ends with the reason, for nothing is worse than a watch that is silent
because it is dead.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from kairship.apiserver.services.reach import Reach
from kairship.kube import Object
from kairship.reconcile import Changed, Clock, Interrupted, ListBegan, Listed, ListEnded, Selection, Step, follow

Place = tuple[str, str]
"""Namespace and name."""


async def follow_in_instance(
    reach: Reach, instance: str, selection: Selection[Object], clock: Clock
) -> AsyncGenerator[Step[Object]]:
    """The steps of `follow`. Raises what the caller is told when the instance cannot be reached any more."""
    while True:
        client = reach.instance(instance)
        async with aclosing(follow(client, selection, clock=clock)) as steps:
            async for step in steps:
                yield step
                if isinstance(step, Interrupted) and reach.instance(instance) is not client:
                    break


class Picture:
    """Which objects a stream of steps has told of: what comes, changes and goes, also over a break."""

    def __init__(self) -> None:
        self._known: dict[Place, str] = {}
        self._listed: set[Place] | None = None

    def take(self, step: Step[Object]) -> tuple[list[Object], list[Place], bool]:
        """Objects that are there or have changed, places of those that are gone, and whether the list is complete."""
        match step:
            case ListBegan():
                self._listed = set()
            case Listed(items):
                return [obj for obj in items if self._put(obj)], [], False
            case ListEnded():
                gone = list(self._known.keys() - (self._listed or set()))
                for place in gone:
                    del self._known[place]
                self._listed = None
                return [], gone, True
            case Changed("DELETED", obj):
                self._known.pop(place_of(obj), None)
                return [], [place_of(obj)], False
            case Changed(_, obj):
                self._put(obj)
                return [obj], [], False
            case _:
                pass
        return [], [], False

    def _put(self, obj: Object) -> bool:
        """Whether this is news."""
        place, version = place_of(obj), str(obj["metadata"].get("resourceVersion"))
        if self._listed is not None:
            self._listed.add(place)
        changed = self._known.get(place) != version
        self._known[place] = version
        return changed


def place_of(obj: Object) -> Place:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
