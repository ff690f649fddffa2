"""Recent writes in the database that all apiservers share, by the database's clock."""

from kairship.index.postgres.connecting import Pool, typed_errors
from kairship.index.postgres.schema import CLOCK
from kairship.index.writes import REMEMBERED, Note, Written


class PostgresWriteLog:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def note(self, caller: str, written: Written) -> None:
        with typed_errors():
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(
                    f"INSERT INTO write VALUES ($1, $2, $3, $4, $5, {CLOCK})",  # noqa: S608 - the clock is ours
                    *(caller, written.cluster, written.kind, written.revision, written.deleted_uid),
                )
                await connection.execute(f"DELETE FROM write WHERE at < {CLOCK} - $1", REMEMBERED)  # noqa: S608

    async def recent(self, caller: str, cluster: str, kind: str) -> list[Note]:
        with typed_errors():
            found = await self._pool.fetch(
                "SELECT cluster, kind, revision, uid, at FROM write"  # noqa: S608 - the clock is ours
                f" WHERE caller = $1 AND cluster = $2 AND kind = $3 AND at >= {CLOCK} - $4",
                *(caller, cluster, kind, REMEMBERED),
            )
        return [Note(Written(*record[:4]), record["at"]) for record in found]
