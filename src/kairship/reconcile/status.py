"""The status of one object: a controller sets fields and conditions, then writes what has changed.

A `StatusWriter` starts with the part of the status that its controller owns. Changes stay in memory until `write`,
which applies them with the revision at which the object was read: a controller that worked with an outdated object
writes nothing. Without a change there is no request.
"""

from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from kairship.kube import Resource
from kairship.reconcile.cache.shapes import Metadata
from kairship.reconcile.controller import Context
from kairship.resources import Condition, ConditionStatus, ConditionType, DocumentedEnum, find_condition, set_condition


class HasConditions(Protocol):
    """Any status with conditions."""

    @property
    def conditions(self) -> tuple[Condition, ...]: ...


S = TypeVar("S", bound=HasConditions)


class StatusWriter(Generic[S]):
    """What one reconcile writes into the status of one object."""

    longest_message: ClassVar[int] = 32768
    """Longer messages of conditions are cut off."""

    def __init__(self, context: Context, resource: Resource, read: Metadata, status: S) -> None:
        """`read` is the object as it was read, `status` the part of its status that this controller owns."""
        self.metadata = read
        self.status = with_sorted_conditions(status)
        self._context = context
        self._resource = resource
        self._stored = self.status

    def find_condition(self, kind: ConditionType) -> Condition | None:
        return find_condition(self.status.conditions, kind)

    def set(self, **fields: Any) -> None:
        """Changes fields of the status. They are stored by `write`."""
        self.status = _replace(self.status, **fields)

    def set_condition(
        self, kind: ConditionType, status: ConditionStatus, reason: DocumentedEnum, message: str = ""
    ) -> None:
        """Sets a condition for the generation that was read. It is stored by `write`."""
        conditions = set_condition(
            self.status.conditions,
            kind,
            status,
            reason,
            message=message[: self.longest_message],
            generation=self.metadata.generation,
            now=self._context.clock.wall(),
        )
        self.set(conditions=sorted_conditions(conditions))

    def remove_condition(self, kind: ConditionType) -> None:
        self.set(conditions=tuple(each for each in self.status.conditions if each.type != kind))

    async def write(self) -> bool:
        """Whether the stored status is the one set here; not if the object has changed since it was read, or is gone.

        A reconcile whose `write` returns False returns `STALE`.
        """
        if self.status == self._stored:
            return True
        revision = await self._context.owner.apply_status(self._resource, self.metadata, self.status)
        if revision is None:
            return False
        self._stored = self.status
        self.metadata = msgspec.structs.replace(self.metadata, resource_version=revision)
        return True


def sorted_conditions(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The API server merges the lists of several field managers and promises no order."""
    return tuple(sorted(conditions, key=lambda condition: condition.type))


def with_sorted_conditions(status: S) -> S:
    return _replace(status, conditions=sorted_conditions(status.conditions))


def _replace(status: S, **fields: Any) -> S:
    return msgspec.structs.replace(status, **fields)  # type: ignore[type-var]
