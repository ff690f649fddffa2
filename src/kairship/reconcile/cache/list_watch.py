"""Lists a collection in pages at one revision, watches the changes since, and lists again when that is needed.

`list_and_watch` is an asynchronous generator of steps. It keeps no object, so the consumer decides what to do with
them: `Reflector` keeps shapes in memory, an index writes rows. It never ends by itself and never raises for an error of
the server or the network; it yields `Interrupted`, waits, and begins again. It runs in the task that iterates it, and a
slow consumer slows the stream down instead of filling memory.

When a watch continues and when the collection is listed again:

- A watch that ends in good order, as each does after its jittered timeout, continues from the last revision. Bookmarks
  keep that revision recent on a quiet collection.
- A revision that the server no longer has (410, as a status or as an event) leads to a list.
- A lost connection leads to a list as well. The server behind the next connection may have been restored from a backup
  and may by now have passed our revision with other events: to continue from it would lose changes silently.
- A continue token that expires while the pages are read leads to a list in one piece.
- A page that is larger than the client accepts leads to a list in smaller pages.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

from kairship.kube import BadReply, Client, Expired, KubeError, ReplyTooLarge, Resource
from kairship.reconcile.clock import Clock
from kairship.reconcile.workqueue.backoff import Backoff, jittered

T = TypeVar("T")


@dataclass(frozen=True)
class Selection(Generic[T]):
    """Which objects are listed and watched, and the part of each that is decoded."""

    resource: Resource
    shape: type[T]
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None

    def __str__(self) -> str:
        parts = (self.resource.plural, self.resource.group, self.namespace, self.label_selector, self.field_selector)
        return " ".join(part for part in parts if part)


class ListWatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Page sizes and times, in seconds. The defaults suit an API server."""

    page_size: int = 500
    """The largest number of objects in a page."""
    page_bytes: int | None = None
    """The aim for the size of a page: pages get smaller where objects are large, and no list is read in one piece. For
    selections of `msgspec.Raw` whose consumer keeps no object: memory then depends neither on number nor on size."""
    list_timeout: float = 60.0
    """The timeout of each page."""
    watch_timeout: float = 360.0
    """The timeout of a watch. It is jittered by a third, or the watches of a restarted server would all end in the same
    minute for ever."""
    inactivity_timeout: float = 150.0
    """API servers send a bookmark about once a minute. Silence for two of them is a dead connection."""
    steady_after: float = 60.0
    """A watch that lasted this long resets the count of failures."""
    backoff: Backoff = Backoff(0.5, 30.0)


class ListBegan(msgspec.Struct, frozen=True):
    """A list begins. Pages of an earlier, unfinished list are void."""


class Listed(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    items: list[T]


class ListEnded(msgspec.Struct, frozen=True):
    """The list is complete. An object that was in no page since `ListBegan` no longer exists."""

    resource_version: str


class Changed(msgspec.Struct, Generic[T], frozen=True):
    """One object was created, changed or deleted. A deleted object comes with its last known state."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T
    resource_version: str


class Bookmark(msgspec.Struct, frozen=True):
    """Nothing changed up to this revision."""

    resource_version: str


class Interrupted(msgspec.Struct, frozen=True):
    """The connection is lost. The next attempt follows after `pause` seconds."""

    error: KubeError
    pause: float


Step = ListBegan | Listed[T] | ListEnded | Changed[T] | Bookmark | Interrupted

_FIRST_PAGE = 50
_SHORT = 1.0  # a watch that ends earlier than this did not end by its timeout


async def list_and_watch(
    client: Client,
    selection: Selection[T],
    *,
    clock: Clock,
    options: ListWatchOptions | None = None,
    since: str | None = None,
) -> AsyncGenerator[Step[T]]:
    """Yields the steps of a collection; the caller wraps this in `aclosing`.

    With `since` it begins with the changes after that revision instead of a list.
    """
    options = options or ListWatchOptions()
    revision, failures, in_pages, pages = since, 0, True, _Pages(options)
    while True:
        opened = clock.now()
        try:
            if revision is None:
                async with aclosing(_list(client, selection, options, pages if in_pages else None)) as listing:
                    async for step in listing:
                        if isinstance(step, ListEnded):
                            revision = step.resource_version
                        yield step
                in_pages = True
            opened = clock.now()
            async with aclosing(_watch(client, selection, options, revision)) as events:
                async for event in events:
                    revision = event.resource_version
                    yield event
        except KubeError as error:
            # A page token expires when a busy collection changes faster than its pages are read: the next list has no
            # pages.
            in_pages = options.page_bytes is not None or not (revision is None and isinstance(error, Expired))
            steady = clock.now() - opened >= options.steady_after
            failures = 1 if steady else failures + 1
            # The first 410 is no failure of the server, so the list follows at once.
            pause = 0.0 if isinstance(error, Expired) and failures == 1 else options.backoff.pause(failures)
            pause = max(pause, getattr(error, "retry_after", None) or 0.0)
            revision = None
            if isinstance(error, ReplyTooLarge):
                pages.shrink()
            yield Interrupted(error, pause)
            await clock.sleep(pause)
        else:
            if clock.now() - opened >= _SHORT:
                failures = 0
            else:
                failures += 1
                await clock.sleep(options.backoff.pause(failures))


class _Pages:
    """Decides how many objects the next page should have."""

    def __init__(self, options: ListWatchOptions) -> None:
        self._wanted = options.page_bytes
        self._most = options.page_size
        self.size = 0

    def first(self) -> None:
        self.size = self._most if self._wanted is None else min(self._most, _FIRST_PAGE)

    def judge(self, items: list[Any]) -> None:
        """Adapts the size to the objects of the last page. It grows slowly: the next objects may be larger."""
        if self._wanted is not None:
            taken = sum(memoryview(item).nbytes for item in items)
            fitting = self._wanted * len(items) // taken if taken else self._most
            self.size = max(1, min(fitting, 4 * max(len(items), 1), self._most))

    def shrink(self) -> None:
        """The page was larger than the client accepts. The next list meets the same objects, so the limit stays."""
        self._most = max(1, self.size // 8)


async def _list(
    client: Client, selection: Selection[T], options: ListWatchOptions, pages: _Pages | None
) -> AsyncGenerator[ListBegan | Listed[T] | ListEnded]:
    """Lists in `pages`, or in one piece without them."""
    yield ListBegan()
    token: str | None = None
    if pages is not None:
        pages.first()
    while True:
        page = await client.typed(selection.shape).list(
            selection.resource,
            namespace=selection.namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            limit=None if pages is None else pages.size,
            continue_token=token,
            timeout=options.list_timeout,
        )
        yield Listed(page.items)
        if not page.continue_token:
            yield ListEnded(page.resource_version)
            return
        token = page.continue_token
        if pages is not None:
            pages.judge(page.items)


async def _watch(
    client: Client, selection: Selection[T], options: ListWatchOptions, revision: str | None
) -> AsyncGenerator[Changed[T] | Bookmark]:
    decoder = msgspec.json.Decoder(selection.shape)
    # The object of a bookmark has nothing but a revision and fits no shape.
    watch = client.typed(msgspec.Raw).watch(
        selection.resource,
        resource_version=revision,
        namespace=selection.namespace,
        label_selector=selection.label_selector,
        field_selector=selection.field_selector,
        server_timeout=jittered(options.watch_timeout, spread=0.33),
        inactivity_timeout=options.inactivity_timeout,
        # The object of a bookmark has only a revision and does not fit the shape.,
    )
    async with aclosing(watch) as events:
        async for event in events:
            if event.type == "BOOKMARK":
                yield Bookmark(event.resource_version)
                continue
            try:
                yield Changed(event.type, decoder.decode(event.object), event.resource_version)
            except msgspec.DecodeError as error:
                raise BadReply(f"an object of {selection} does not have the expected shape: {error}") from error
