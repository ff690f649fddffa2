"""Reading the ring of a cluster's file."""

from pathlib import PurePath

import apsw

from kairship.index.ring import RingChange, RingMark, RingPage
from kairship.index.sqlite.statements import one, rows


def ring_page(db: apsw.Connection, after: RingMark | None, limit: int) -> RingPage:
    """What came behind a mark. A ring is called as its file, whose name no other ever had or will have."""
    ring = PurePath(db.filename).name
    last, first = _ends(db)
    if after is None:
        return RingPage(RingMark(ring, last), [])
    if after.ring != ring or after.number < first - 1:
        return RingPage(RingMark(ring, last), [], lost=True)
    if after.number >= last:
        return RingPage(after, [])
    found = rows(
        db,
        "SELECT number, kind, key, uid, deleted FROM ring WHERE number > ? ORDER BY number LIMIT ?",
        (after.number, limit),
    )
    changes = [RingChange(kind, key, uid, bool(deleted)) for _, kind, key, uid, deleted in found]
    return RingPage(RingMark(ring, found[-1][0] if found else after.number), changes)


def _ends(db: apsw.Connection) -> tuple[int, int]:
    """The number of the last change that there ever was, and of the first that is still there."""
    last = one(db, "SELECT seq FROM sqlite_sequence WHERE name = 'ring'")
    if last is None:
        return 0, 1
    first = one(db, "SELECT min(number) FROM ring")
    return last[0], first[0] if first is not None and first[0] is not None else last[0] + 1
