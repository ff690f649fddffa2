"""Histories in the database of the index."""

from collections.abc import Mapping

from kairship.index.history.model import TIERS, Sample, Slot, Tier, decoded, encoded
from kairship.index.postgres.connecting import Pool, typed_errors

_PUT = """
INSERT INTO slot VALUES ($1, $2, $3, $4, $5) ON CONFLICT (subject, tier, place)
DO UPDATE SET begin = excluded.begin, cells = excluded.cells
"""


class PostgresHistory:
    """Made by `PostgresStore.history`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record(self, at: float, samples: Mapping[str, Sample]) -> None:
        with typed_errors():
            async with self._pool.acquire() as connection, connection.transaction():
                for tier in TIERS:
                    begin = tier.begin(at)
                    found = await connection.fetch(
                        "SELECT subject, cells FROM slot WHERE tier = $1 AND place = $2 AND begin = $3"
                        " AND subject = ANY($4)",
                        *(tier.number, tier.place(begin), begin, list(samples)),
                    )
                    slots = {row["subject"]: decoded(begin, row["cells"]) for row in found}
                    for subject, sample in samples.items():
                        slots.setdefault(subject, Slot(begin)).take(sample)
                    place = (tier.number, tier.place(begin), begin)
                    await connection.executemany(
                        _PUT, [(subject, *place, encoded(slot)) for subject, slot in sorted(slots.items())]
                    )
                    # Of those who are no more; those who are have it overwritten.
                    await connection.execute(
                        "DELETE FROM slot WHERE tier = $1 AND begin <= $2", tier.number, int(at - tier.seconds)
                    )

    async def read(self, subject: str, tier: Tier, *, since: float, until: float) -> list[Slot]:
        with typed_errors():
            found = await self._pool.fetch(
                "SELECT begin, cells FROM slot WHERE subject = $1 AND tier = $2 AND begin > $3 AND begin < $4"
                " ORDER BY begin",
                *(subject, tier.number, since - tier.step, until),
            )
        return [decoded(row["begin"], row["cells"]) for row in found]
