"""The declaration of a controller: its name, the sources of its keys, and the coroutine that reconciles one key.

`reconcile` is level-triggered: it gets a key, never an event. It reads the state, compares it with the desired state
and changes what differs; when nothing differs it does nothing. It does not sleep: a reconcile that has to wait returns
`RetryAfter`.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from structlog.typing import FilteringBoundLogger

from kairship.kube import Client
from kairship.reconcile.cache.reflector import Change, Reflector
from kairship.reconcile.cache.shapes import HasMetadata
from kairship.reconcile.clock import Clock
from kairship.reconcile.events import Recorder
from kairship.reconcile.field_owner import FieldOwner
from kairship.reconcile.key import Key
from kairship.reconcile.leaderelection.leader_term import LeaderTerm
from kairship.reconcile.results import Result
from kairship.reconcile.workqueue.queue import RetryPolicy

T = TypeVar("T", bound=HasMetadata)
N = TypeVar("N")


@dataclass(frozen=True)
class Context:
    """What a reconcile works with."""

    client: Client
    owner: FieldOwner
    """Writes the fields that this controller owns."""
    events: Recorder
    log: FilteringBoundLogger
    """A log bound to the controller, the key and this reconcile."""
    clock: Clock
    term: LeaderTerm | None
    """For calls to servers other than the API server of `client`, which is fenced by the term already. None without
    leader election."""


Reconcile = Callable[[Context, Key], Awaitable[Result]]


Enqueue = Callable[[Key], None]
"""Adds a key to the work queue of a controller. Returns at once."""


class Source(Protocol):
    """Enqueues the keys that a controller has to reconcile."""

    def subscribe(self, enqueue: Enqueue) -> Callable[[], None]:
        """Calls `enqueue` from now on. Returns a function that ends the subscription."""


@dataclass(frozen=True)
class Watch(Generic[T]):
    """The source for a collection of the API server: `keys` maps each object to the keys that it affects."""

    reflector: Reflector[T]
    keys: Callable[[T], Iterable[Key]]

    def subscribe(self, enqueue: Enqueue) -> Callable[[], None]:
        return self.reflector.subscribe(lambda change: self._enqueue_all(change, enqueue))

    def _enqueue_all(self, change: Change[T], enqueue: Enqueue) -> None:
        # The old object counts too: the key that it belonged to before must be reconciled without it.
        for obj in (change.old, change.new):
            for key in self.keys(obj) if obj is not None else ():
                enqueue(key)


@dataclass(frozen=True)
class Notifications(Generic[N]):
    """The source for anything that calls its subscribers, such as the health of connections: `keys` maps each
    notification to the keys that it affects."""

    subscribe_to: Callable[[Callable[[N], None]], Callable[[], None]]
    """Registers a subscriber and returns a function that removes it."""
    keys: Callable[[N], Iterable[Key]]

    def subscribe(self, enqueue: Enqueue) -> Callable[[], None]:
        def notified(notification: N) -> None:
            for key in self.keys(notification):
                enqueue(key)

        return self.subscribe_to(notified)


@dataclass(frozen=True, kw_only=True)
class Controller:
    name: str
    watches: Sequence[Watch[Any]]
    """The collections that must be cached before the first reconcile."""
    sources: Sequence[Source] = ()
    """What else enqueues keys."""
    reconcile: Reconcile
    workers: int = 1
    timeout: float = 600.0
    """The timeout of one reconcile in seconds, so that a call that never returns does not block its key for ever."""
    retries: RetryPolicy | None = None

    @property
    def field_owner(self) -> str:
        return f"kairship-{self.name}"


def own_key(obj: HasMetadata) -> Iterable[Key]:
    """The key of the object itself, in a group of its own."""
    return (Key(obj.metadata.name, namespace=obj.metadata.namespace, group=obj.metadata.name),)
