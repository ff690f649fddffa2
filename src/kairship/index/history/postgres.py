"""The history in the PostgreSQL database of the index."""

from collections.abc import Mapping

from kairship.index.history.model import TIERS, Sample, Slot, Tier, decoded, encoded
from kairship.index.postgres.database_errors import ACQUIRE_TIMEOUT, Pool, typed_errors
from kairship.index.postgres.execute_many import execute_many

_PUT = """
INSERT INTO slot VALUES ($1, $2, $3, $4, $5) ON CONFLICT (subject, tier, place)
DO UPDATE SET begin = excluded.begin, cells = excluded.cells
"""


class PostgresHistory:
    """`pool` is that of `PostgresStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record(self, at: float, samples: Mapping[str, Sample]) -> None:
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                for tier in TIERS:
                    begin = tier.begin(at)
                    found = await connection.fetch(
                        "SELECT subject, cells FROM slot WHERE tier = $1 AND place = $2 AND begin = $3"
                        " AND subject = ANY($4)",
                        *(tier.number, tier.index(begin), begin, list(samples)),
                    )
                    slots = {row["subject"]: decoded(begin, row["cells"]) for row in found}
                    for subject, sample in samples.items():
                        slots.setdefault(subject, Slot(begin)).add(sample)
                    slot_key = (tier.number, tier.index(begin), begin)
                    rows = [(subject, *slot_key, encoded(slot)) for subject, slot in sorted(slots.items())]
                    await execute_many(connection, _PUT, rows)
                    # This removes slots of subjects that no longer exist; the others' slots are overwritten.
                    await connection.execute(
                        "DELETE FROM slot WHERE tier = $1 AND begin <= $2", tier.number, int(at - tier.seconds)
                    )

    async def read(self, subject: str, tier: Tier, *, since: float, until: float) -> list[Slot]:
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                found = await connection.fetch(
                    "SELECT begin, cells FROM slot WHERE subject = $1 AND tier = $2 AND begin > $3 AND begin < $4"
                    " ORDER BY begin",
                    *(subject, tier.number, since - tier.step, until),
                )
        return [decoded(row["begin"], row["cells"]) for row in found]
