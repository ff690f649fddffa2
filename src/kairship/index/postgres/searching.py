"""Search over all clusters at once. Where to begin is left to PostgreSQL: every part of a condition has an index."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import asyncpg
import msgspec

from kairship.index.postgres.connecting import Connection
from kairship.index.postgres.emitter import PartitionNumber, namespace_condition, stored_token
from kairship.index.query import Query, allowed
from kairship.index.search import SHORT, Hit, Rank, Search, SearchPosition, names_kind
from kairship.index.tokens import IMAGE, LABEL, NAMESPACE
from kairship.kube import Resource

_LAST = "\U0010ffff"


class _Kind(NamedTuple):
    number: int
    cluster: str
    name: str
    resource: Resource


class Searching:
    """Made by `begin`, within the caller's transaction."""

    def __init__(self, connection: Connection, asked: Search, kinds: Sequence[_Kind]) -> None:
        self._connection = connection
        self._asked = asked
        self._kinds = {kind.number: kind for kind in kinds}
        self._arguments: list[Any] = []

    @classmethod
    async def begin(cls, connection: Connection, asked: Search) -> "Searching":
        found = await connection.fetch(
            "SELECT id, cluster, name, resource FROM part WHERE cluster = ANY($1)",
            list({scope.cluster for scope in asked.scopes}),
        )
        kinds = [
            _Kind(row["id"], row["cluster"], row["name"], msgspec.json.decode(row["resource"], type=Resource))
            for row in found
        ]
        return cls(connection, asked, kinds)

    async def page(self) -> list[Hit]:
        condition, ranks = await self._condition()
        if condition is None:
            return []
        cases = " ".join(f"WHEN {found} THEN {rank:d}" for rank, found in ranks.items())
        position = "true"
        if (after := self._asked.after) is not None:
            marks = (self._bind(value) for value in (after.name, after.cluster, after.kind, after.namespace))
            rank = f"{self._bind(after.rank)}::int"
            position = f"(rank, name, cluster, kind, ns) > ({rank}, {', '.join(marks)})"
        rows = await self._connection.fetch(
            "SELECT * FROM (SELECT o.part, o.ns, o.name, o.uid, o.created, o.body, k.cluster, k.name AS kind,"  # noqa: S608
            f" CASE {cases} END AS rank FROM obj o JOIN part k ON k.id = o.part WHERE {condition}) found"
            f" WHERE {position} ORDER BY rank, name, cluster, kind, ns LIMIT {self._bind(self._asked.limit)}::bigint",
            *self._arguments,
        )
        return [self._hit(row) for row in rows]

    async def counts(self) -> dict[tuple[str, str], int]:
        condition, _ = await self._condition()
        if condition is None:
            return {}
        rows = await self._connection.fetch(
            f"SELECT o.part, count(*) FROM obj o WHERE {condition} GROUP BY o.part",  # noqa: S608 - marks alone
            *self._arguments,
        )
        return {(self._kinds[part].cluster, self._kinds[part].name): count for part, count in rows}

    async def _condition(self) -> tuple[str | None, dict[Rank, str]]:
        """What an object must fulfil, None if none can; and what gives it which rank."""
        visible = self._visible()
        if visible is None:
            return None, {}
        each = [await self._in_parts(word) for word in self._asked.words]
        conditions = [visible, *(f"({' OR '.join(found.values())})" for found in each)]
        return " AND ".join(conditions), each[0]

    def _visible(self) -> str | None:
        asked = Query(scopes=self._asked.scopes, kinds=self._asked.kinds)
        known = (PartitionNumber(kind.number, kind.cluster, kind.name) for kind in self._kinds.values())
        places = []
        for one in allowed(asked, known):
            place = f"o.part = ANY({self._bind(list(one.partitions))}::bigint[])"
            places.append(f"({place}{namespace_condition(one, self._bind)})")
        if not places:
            return None
        visible = f"({' OR '.join(places)})"
        return f"{visible} AND o.ns = {self._bind(self._asked.namespace)}" if self._asked.namespace else visible

    async def _in_parts(self, word: str) -> dict[Rank, str]:
        begin, end = self._bind(word), self._bind(word + _LAST)
        found = {Rank.NAME_BEGINS: f"(o.name >= {begin} AND o.name < {end})"}
        if len(word) >= SHORT:
            # In a form that trigrams have an index for.
            found[Rank.NAME] = f"o.name ILIKE {self._bind(f'%{_escaped(word)}%')}"
        if parts := [kind.number for kind in self._kinds.values() if names_kind(word, kind.name, kind.resource)]:
            found[Rank.KIND] = f"o.part = ANY({self._bind(parts)}::bigint[])"
        for rank, mark, begins, among in (
            (Rank.NAMESPACE, NAMESPACE, "", "%"),
            (Rank.LABEL, LABEL, "=", "%=%"),
            (Rank.IMAGE, IMAGE, "/", "%"),
        ):
            if tokens := await self._tokens(word, mark, begins, among):
                found[rank] = f"o.tok && {self._bind(tokens)}::text[]"
        return found

    async def _tokens(self, word: str, mark: str, begins: str, among: str) -> list[str]:
        """The stored tokens with this mark that have the word in them; a short word where something begins."""
        plain = f"lower(substr(text, {len(mark) + 1}))"
        if len(word) >= SHORT:
            condition, sought = f"strpos({plain}, $3) > 0", word
        elif mark == LABEL:
            condition, sought = f"strpos({plain}, $3) > 0", begins + word
        else:
            condition, sought = f"strpos('/' || {plain}, $3) > 0", "/" + word
        rows: Iterable[asyncpg.Record] = await self._connection.fetch(
            f"SELECT part, text FROM word WHERE part = ANY($1) AND text LIKE $2 AND {condition}",  # noqa: S608
            *(list(self._kinds), f"{mark}{among}", sought),
        )
        return [stored_token(text, part=part, cluster="") for part, text in rows]

    def _bind(self, value: Any) -> str:
        self._arguments.append(value)
        return f"${len(self._arguments)}"

    def _hit(self, row: asyncpg.Record) -> Hit:
        position = SearchPosition(row["rank"], row["name"], row["cluster"], row["kind"], row["ns"])
        return Hit(position, self._kinds[row["part"]].resource, row["uid"], row["created"], row["body"])


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
