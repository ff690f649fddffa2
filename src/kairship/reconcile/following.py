"""Following a collection for ever: a paged list at one revision, then the changes since, and over again when needed.

`follow` is an asynchronous generator of steps. It keeps no object, so that what is done with them is the consumer's
matter: `Reflector` keeps shapes in memory, an index writes rows. It never ends by itself and never raises for what a
server or a network does; it tells of it (`Interrupted`), waits, and begins again. It runs in the task that iterates
it, and a slow consumer slows the stream down instead of filling memory.

When it goes on and when it lists again:

- A watch that ends in good order, as each does after its jittered timeout, goes on from the last revision. Bookmarks
  keep that revision young on a quiet collection.
- A revision that the server no longer has (410, as a status or as an event) means a list.
- A lost connection means a list as well. The server behind the next connection may have been restored from a backup
  and by now have passed our revision with other events: going on from it would be wrong without anybody noticing.
- A continue token that expires while the pages are read means a list in one piece.
- A page that is larger than the client takes means a list in smaller pages.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

from kairship.kube import BadReply, Client, Expired, KubeError, ReplyTooLarge, Resource
from kairship.reconcile.backoff import Backoff, jittered
from kairship.reconcile.clock import Clock

T = TypeVar("T")


@dataclass(frozen=True)
class Selection(Generic[T]):
    """Which objects are followed, and the part of each that is decoded."""

    resource: Resource
    shape: type[T]
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None

    def __str__(self) -> str:
        words = (self.resource.plural, self.resource.group, self.namespace, self.label_selector, self.field_selector)
        return " ".join(word for word in words if word)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The times that following goes by, in seconds. The defaults suit an API server."""

    page_size: int = 500
    """So many objects a page has at most."""
    page_bytes: int | None = None
    """Pages get smaller where objects are large, so that one takes about so many bytes, and no list is ever read in one
    piece. For followers of `msgspec.Raw`, which keep no object: then memory depends neither on number nor on size."""
    list_timeout: float = 60.0
    """For each page."""
    watch_timeout: float = 360.0
    """Jittered by a third, so that the watches of a restarted server do not all end in the same minute for ever."""
    inactivity_timeout: float = 150.0
    """API servers send a bookmark about once a minute. Silence for two of them is a dead connection."""
    steady_after: float = 60.0
    """A watch that lasted this long ends the counting of failures."""
    backoff: Backoff = Backoff(0.5, 30.0)


class ListBegan(msgspec.Struct, frozen=True):
    """A list begins; one that was begun before is void."""


class Listed(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    items: list[T]


class ListEnded(msgspec.Struct, frozen=True):
    """What was in no page since `ListBegan` does not exist any more."""

    resource_version: str


class Changed(msgspec.Struct, Generic[T], frozen=True):
    """One object was created, changed or deleted; of a deleted one, the last that was known."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T
    resource_version: str


class Bookmark(msgspec.Struct, frozen=True):
    """Nothing changed up to this revision."""

    resource_version: str


class Interrupted(msgspec.Struct, frozen=True):
    """Contact is lost; the next attempt follows after `pause` seconds."""

    error: KubeError
    pause: float


Step = ListBegan | Listed[T] | ListEnded | Changed[T] | Bookmark | Interrupted

_FIRST_PAGE = 50
_SHORT = 1.0  # a watch that ends earlier than this did not end because its time was over


async def follow(
    client: Client, selection: Selection[T], *, clock: Clock, pace: Pace | None = None, since: str | None = None
) -> AsyncGenerator[Step[T]]:
    """Wrap it in `aclosing`. With `since` it begins with the changes after that revision instead of a list."""
    pace = pace or Pace()
    revision, failures, in_pages, pages = since, 0, True, _Pages(pace)
    while True:
        opened = clock.now()
        try:
            if revision is None:
                async with aclosing(_list(client, selection, pace, pages if in_pages else None)) as listing:
                    async for step in listing:
                        if isinstance(step, ListEnded):
                            revision = step.resource_version
                        yield step
                in_pages = True
            opened = clock.now()
            async with aclosing(_watch(client, selection, pace, revision)) as events:
                async for event in events:
                    revision = event.resource_version
                    yield event
        except KubeError as error:
            # An expired page token is the price of paging through a busy collection: no reason to page again.
            in_pages = pace.page_bytes is not None or not (revision is None and isinstance(error, Expired))
            steady = clock.now() - opened >= pace.steady_after
            failures = 1 if steady else failures + 1
            # The first 410 is no failure of the server: it has told us what to do.
            pause = 0.0 if isinstance(error, Expired) and failures == 1 else pace.backoff.pause(failures)
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
                await clock.sleep(pace.backoff.pause(failures))


class _Pages:
    """How many objects the next page should have."""

    def __init__(self, pace: Pace) -> None:
        self._wanted = pace.page_bytes
        self._most = pace.page_size
        self.size = 0

    def first(self) -> None:
        self.size = self._most if self._wanted is None else min(self._most, _FIRST_PAGE)

    def judge(self, items: list[Any]) -> None:
        """By those on the last page. Growth is slow: the next may be larger ones."""
        if self._wanted is not None:
            taken = sum(memoryview(item).nbytes for item in items)
            fitting = self._wanted * len(items) // taken if taken else self._most
            self.size = max(1, min(fitting, 4 * max(len(items), 1), self._most))

    def shrink(self) -> None:
        """The page was larger than can be taken. It may come to the same objects again, so this is remembered."""
        self._most = max(1, self.size // 8)


async def _list(
    client: Client, selection: Selection[T], pace: Pace, pages: _Pages | None
) -> AsyncGenerator[ListBegan | Listed[T] | ListEnded]:
    """In pages, or in one piece."""
    yield ListBegan()
    token: str | None = None
    if pages is not None:
        pages.first()
    while True:
        page = await client.list(
            selection.resource,
            namespace=selection.namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            limit=None if pages is None else pages.size,
            continue_token=token,
            as_type=selection.shape,
            timeout=pace.list_timeout,
        )
        yield Listed(page.items)
        if not page.continue_token:
            yield ListEnded(page.resource_version)
            return
        token = page.continue_token
        if pages is not None:
            pages.judge(page.items)


async def _watch(
    client: Client, selection: Selection[T], pace: Pace, revision: str | None
) -> AsyncGenerator[Changed[T] | Bookmark]:
    decoder = msgspec.json.Decoder(selection.shape)
    watch = client.watch(
        selection.resource,
        resource_version=revision,
        namespace=selection.namespace,
        label_selector=selection.label_selector,
        field_selector=selection.field_selector,
        server_timeout=jittered(pace.watch_timeout, spread=0.33),
        inactivity_timeout=pace.inactivity_timeout,
        # The object of a bookmark has nothing but a revision and fits no shape.
        as_type=msgspec.Raw,
    )
    async with aclosing(watch) as events:
        async for event in events:
            if event.type == "BOOKMARK":
                yield Bookmark(event.resource_version)
                continue
            try:
                yield Changed(event.type, decoder.decode(event.object), event.resource_version)
            except msgspec.DecodeError as error:
                raise BadReply(f"one of the {selection} is not as declared: {error}") from error
