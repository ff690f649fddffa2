"""Callers' recent writes in the database that all apiservers share, timed by the database's clock."""

from kairship.index.postgres.database_errors import ACQUIRE_TIMEOUT, Pool, typed_errors
from kairship.index.postgres.schema import CLOCK
from kairship.index.write_log import REMEMBERED, LoggedWrite, Write


class PostgresWriteLog:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def note(self, caller: str, write: Write) -> None:
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                await connection.execute(
                    f"INSERT INTO write VALUES ($1, $2, $3, $4, $5, {CLOCK})",  # noqa: S608 - the clock is ours
                    *(caller, write.cluster, write.kind, write.revision, write.deleted_uid),
                )
                await connection.execute(f"DELETE FROM write WHERE at < {CLOCK} - $1", REMEMBERED)  # noqa: S608

    async def recent(self, caller: str, cluster: str, kind: str) -> list[LoggedWrite]:
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                found = await connection.fetch(
                    "SELECT cluster, kind, revision, uid, at FROM write"  # noqa: S608 - the clock is ours
                    f" WHERE caller = $1 AND cluster = $2 AND kind = $3 AND at >= {CLOCK} - $4",
                    *(caller, cluster, kind, REMEMBERED),
                )
        return [LoggedWrite(Write(*record[:4]), record["at"]) for record in found]
