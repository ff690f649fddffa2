"""One statement for many rows, which a caller may give up.

asyncpg sends the rows in batches. If its `executemany` is cancelled between two of them, it loses the cancellation and
waits for the reply to a batch whose end it has not sent, until the timeout, and once more in the rollback after that.
So a caller that gives up ends the connection instead: the server rolls its transaction back.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from kairship.index.postgres.database_errors import Connection


async def execute_many(connection: Connection, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
    sending = asyncio.ensure_future(connection.executemany(statement, rows))
    try:
        await asyncio.wait((sending,))
    except asyncio.CancelledError:
        connection.terminate()
        sending.cancel()  # it may wait for room in the buffer of the connection, which will not come any more
        await asyncio.wait((sending,))
        if not sending.cancelled():
            sending.exception()  # asyncio would log an exception that nobody has looked at
        raise
    sending.result()
