"""Searches all clusters at once. PostgreSQL's planner decides where to begin: every condition has an index."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import asyncpg
import msgspec

from kairship.index.postgres.database_errors import Connection
from kairship.index.postgres.emitter import PartitionNumber, namespace_condition, stored_token
from kairship.index.query import Query, visible_partitions
from kairship.index.search.model import SHORT, Hit, Rank, Search, SearchPosition, names_kind
from kairship.index.tokens import IMAGE, LABEL, NAMESPACE
from kairship.kube import Resource

_LAST = "\U0010ffff"


class _Kind(NamedTuple):
    number: int
    cluster: str
    name: str
    resource: Resource


class Searching:
    """One search, within the transaction of the connection. Created by `begin`."""

    def __init__(self, connection: Connection, search: Search, kinds: Sequence[_Kind]) -> None:
        self._connection = connection
        self._search = search
        self._kinds = {kind.number: kind for kind in kinds}
        self._arguments: list[Any] = []

    @classmethod
    async def begin(cls, connection: Connection, search: Search) -> "Searching":
        found = await connection.fetch(
            "SELECT id, cluster, name, resource FROM part WHERE cluster = ANY($1)",
            list({scope.cluster for scope in search.scopes}),
        )
        kinds = [
            _Kind(row["id"], row["cluster"], row["name"], msgspec.json.decode(row["resource"], type=Resource))
            for row in found
        ]
        return cls(connection, search, kinds)

    async def page(self) -> list[Hit]:
        condition, ranks = await self._condition()
        if condition is None:
            return []
        cases = " ".join(f"WHEN {found} THEN {rank:d}" for rank, found in ranks.items())
        position = "true"
        if (after := self._search.after) is not None:
            marks = (self._bind(value) for value in (after.name, after.cluster, after.kind, after.namespace))
            rank = f"{self._bind(after.rank)}::int"
            position = f"(rank, name, cluster, kind, ns) > ({rank}, {', '.join(marks)})"
        rows = await self._connection.fetch(
            "SELECT * FROM (SELECT o.part, o.ns, o.name, o.uid, o.created, o.body, k.cluster, k.name AS kind,"  # noqa: S608
            f" CASE {cases} END AS rank FROM obj o JOIN part k ON k.id = o.part WHERE {condition}) found"
            f" WHERE {position} ORDER BY rank, name, cluster, kind, ns LIMIT {self._bind(self._search.limit)}::bigint",
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
        """The condition of a hit, None if there cannot be one; and the condition of each rank."""
        visible = self._visible()
        if visible is None:
            return None, {}
        each = [await self._by_rank(word) for word in self._search.words]
        conditions = [visible, *(f"({' OR '.join(found.values())})" for found in each)]
        return " AND ".join(conditions), each[0]

    def _visible(self) -> str | None:
        query = Query(scopes=self._search.scopes, kinds=self._search.kinds)
        known = (PartitionNumber(kind.number, kind.cluster, kind.name) for kind in self._kinds.values())
        alternatives = []
        for one in visible_partitions(query, known):
            condition = f"o.part = ANY({self._bind(list(one.partitions))}::bigint[])"
            alternatives.append(f"({condition}{namespace_condition(one, self._bind)})")
        if not alternatives:
            return None
        visible = f"({' OR '.join(alternatives)})"
        return f"{visible} AND o.ns = {self._bind(self._search.namespace)}" if self._search.namespace else visible

    async def _by_rank(self, word: str) -> dict[Rank, str]:
        begin, end = self._bind(word), self._bind(word + _LAST)
        found = {Rank.NAME_BEGINS: f"(o.name >= {begin} AND o.name < {end})"}
        if len(word) >= SHORT:
            # ILIKE is the form for which the trigram index can be used.
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
        """The stored tokens of this type that contain the word; a short word must be at a beginning."""
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
