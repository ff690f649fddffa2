"""How much the database holds of each kind of a cluster."""

from kairship.index.postgres.database_errors import Connection
from kairship.index.store import Size

_SIZES = (
    "SELECT k.name, count(o.key), coalesce(sum(octet_length(o.body)), 0)::bigint AS bytes"
    " FROM part k LEFT JOIN obj o ON o.part = k.id WHERE k.cluster = $1 GROUP BY k.name"
)


async def sizes(connection: Connection, cluster: str) -> dict[str, Size]:
    return {kind: Size(objects, size) for kind, objects, size in await connection.fetch(_SIZES, cluster)}
