"""How much a cluster's file holds of each kind."""

import apsw

from kairship.index.sqlite.statements import rows
from kairship.index.store import Size

_SIZES = (
    "SELECT k.name, count(o.id), coalesce(sum(length(o.body)), 0)"
    " FROM part k LEFT JOIN obj o ON o.part = k.id GROUP BY k.id"
)


def sizes(db: apsw.Connection) -> dict[str, Size]:
    return {kind: Size(objects, size) for kind, objects, size in rows(db, _SIZES)}
