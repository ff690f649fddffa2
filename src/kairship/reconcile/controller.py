"""What a controller is: a name, what wakes it, and a coroutine that looks at one key and sets things right.

`reconcile` is level-triggered: it is told which key, never what happened. It reads the state, compares it with what
should be and changes what differs; called once more, or once too often, it does nothing. It does not sleep: to wait is
to return `RetryAfter`.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from structlog.typing import FilteringBoundLogger

from kairship.kube import Client
from kairship.reconcile.clock import Clock
from kairship.reconcile.events import Recorder
from kairship.reconcile.key import Key
from kairship.reconcile.ownership import FieldOwner
from kairship.reconcile.queue import RetryPolicy
from kairship.reconcile.reflector import Change, Reflector
from kairship.reconcile.results import Result
from kairship.reconcile.shapes import Shaped
from kairship.reconcile.term import LeaderTerm

T = TypeVar("T", bound=Shaped)


@dataclass(frozen=True)
class Context:
    """What one reconcile works with."""

    client: Client
    owner: FieldOwner
    """For writes: the fields of this controller."""
    events: Recorder
    log: FilteringBoundLogger
    """Knows the controller, the key and this reconcile."""
    clock: Clock
    term: LeaderTerm | None
    """For calls that carry it. The client is fenced by it already. None where nobody is elected."""


Reconcile = Callable[[Context, Key], Awaitable[Result]]


@dataclass(frozen=True)
class Watch(Generic[T]):
    """Changes in a collection, and the keys that each of its objects is a reason to look at."""

    reflector: Reflector[T]
    keys: Callable[[T], Iterable[Key]]

    def subscribe(self, add: Callable[[Key], None]) -> Callable[[], None]:
        return self.reflector.subscribe(lambda change: self._add_all(change, add))

    def _add_all(self, change: Change[T], add: Callable[[Key], None]) -> None:
        # What the object was counts too: whoever it belonged to before must hear that it does no longer.
        for obj in (change.old, change.new):
            for key in self.keys(obj) if obj is not None else ():
                add(key)


@dataclass(frozen=True, kw_only=True)
class Controller:
    name: str
    watches: Sequence[Watch[Any]]
    reconcile: Reconcile
    workers: int = 1
    timeout: float = 600.0
    """For one reconcile, so that a call that never returns does not keep its key for ever."""
    retries: RetryPolicy | None = None

    @property
    def field_owner(self) -> str:
        return f"kairship-{self.name}"


def own_key(obj: Shaped) -> Iterable[Key]:
    """The key of the object itself, in a group of its own: for the kinds that stand for an instance."""
    return (Key(obj.metadata.name, namespace=obj.metadata.namespace, group=obj.metadata.name),)
