"""Reads the change feed of a cluster's file, which is its table `ring`."""

from pathlib import PurePath

import apsw

from kairship.index.change_feed import FeedChange, FeedPage, FeedPosition
from kairship.index.sqlite.statements import one, rows


def feed_page(db: apsw.Connection, after: FeedPosition | None, limit: int) -> FeedPage:
    """The changes after a position. A feed is identified by the name of its file, which is never used twice."""
    feed = PurePath(db.filename).name
    last, first = _ends(db)
    if after is None:
        return FeedPage(FeedPosition(feed, last), [])
    if after.feed != feed or after.number < first - 1:
        return FeedPage(FeedPosition(feed, last), [], lost=True)
    if after.number >= last:
        return FeedPage(after, [])
    found = rows(
        db,
        "SELECT number, kind, key, uid, deleted FROM ring WHERE number > ? ORDER BY number LIMIT ?",
        (after.number, limit),
    )
    changes = [FeedChange(kind, key, uid, bool(deleted)) for _, kind, key, uid, deleted in found]
    return FeedPage(FeedPosition(feed, found[-1][0] if found else after.number), changes)


def _ends(db: apsw.Connection) -> tuple[int, int]:
    """The number of the last change that there ever was, and of the first change that is still kept."""
    last = one(db, "SELECT seq FROM sqlite_sequence WHERE name = 'ring'")
    if last is None:
        return 0, 1
    first = one(db, "SELECT min(number) FROM ring")
    return last[0], first[0] if first is not None and first[0] is not None else last[0] + 1
