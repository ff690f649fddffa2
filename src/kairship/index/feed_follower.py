"""Follows the change feeds of many clusters at once, by polling each of them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import NamedTuple

import structlog

from kairship.index.change_feed import FeedChange, FeedPosition
from kairship.index.errors import BrokenIndexError, NoSuchClusterError
from kairship.index.store import Index

log = structlog.get_logger(__name__)

_PAGE = 500
_INTERVAL = 0.25


class FeedEvent(NamedTuple):
    """A change in a cluster, or None in place of the change if everything of the cluster has to be read again."""

    cluster: str
    change: FeedChange | None


async def follow_feeds(index: Index, clusters: Callable[[], Iterable[str]]) -> AsyncGenerator[list[FeedEvent]]:
    """Yields, without end, what has happened since the last time, which may be nothing.

    `clusters` is called each time. A cluster that is added later begins with an event that asks the reader to read all
    of it. Wrap the generator in `aclosing`.
    """
    positions: dict[str, FeedPosition | None] = {}
    first = True
    while True:
        wanted, events = set(clusters()), list[FeedEvent]()
        positions = {cluster: position for cluster, position in positions.items() if cluster in wanted}
        for cluster in sorted(wanted):
            try:
                page = await index.changes(cluster, positions.get(cluster), limit=_PAGE)
            except NoSuchClusterError:
                continue
            except BrokenIndexError as error:
                log.warning("the change feed of a cluster cannot be read", cluster=cluster, error=str(error))
                continue
            if page.lost or (cluster not in positions and not first):
                events.append(FeedEvent(cluster, None))
            events += (FeedEvent(cluster, change) for change in page.changes)
            positions[cluster] = page.position
        first = False
        yield events
        if not events:
            await asyncio.sleep(_INTERVAL)
