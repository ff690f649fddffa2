"""Recent writes in the database that all apiservers share."""

import time
from collections.abc import Callable

from kairship.index.postgres.connecting import Pool, typed_errors
from kairship.index.writes import REMEMBERED, Written


class PostgresWriteLog:
    def __init__(self, pool: Pool, *, wall: Callable[[], float] = time.time) -> None:
        self._pool = pool
        self._wall = wall

    async def note(self, caller: str, written: Written) -> None:
        now = self._wall()
        with typed_errors():
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(
                    "INSERT INTO write VALUES ($1, $2, $3, $4, $5, $6)",
                    *(caller, written.cluster, written.kind, written.revision, written.deleted_uid, now),
                )
                await connection.execute("DELETE FROM write WHERE at < $1", now - REMEMBERED)

    async def recent(self, caller: str, cluster: str, kind: str) -> list[Written]:
        with typed_errors():
            found = await self._pool.fetch(
                "SELECT cluster, kind, revision, uid FROM write"
                " WHERE caller = $1 AND cluster = $2 AND kind = $3 AND at >= $4",
                *(caller, cluster, kind, self._wall() - REMEMBERED),
            )
        return [Written(*record) for record in found]
