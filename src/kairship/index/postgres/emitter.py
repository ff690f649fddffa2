"""Emits the SQL of a plan, over all clusters. PostgreSQL's planner decides with which index to begin."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kairship.index.query import (
    RESERVED_FROM,
    RESERVED_TO,
    Column,
    Condition,
    HasToken,
    LabelNumber,
    NameContains,
    OwnedBy,
    Plan,
    Position,
    Sort,
    VisiblePartitions,
    visible_partitions,
)
from kairship.index.tokens import is_owner, label_key_token, label_token, owner_token
from kairship.resources import reserved_names

_OWNED = """o.tok && ARRAY(WITH RECURSIVE tree(cluster, token) AS (
  SELECT c, c || '/' || {owner} FROM unnest({clusters}::text[]) c
  UNION
  SELECT tree.cluster, tree.cluster || '/o:' || child.uid FROM tree JOIN obj child ON child.tok @> ARRAY[tree.token]
) SELECT token FROM tree)"""


class PartitionNumber(NamedTuple):
    number: int
    cluster: str
    kind: str


def stored_token(token: str, *, part: int, cluster: str) -> str:
    """A token as it is stored in the column `tok`."""
    return f"{cluster}/{token}" if is_owner(token) else f"{part}/{token}"


def namespace_condition(one: VisiblePartitions, bind: Callable[[Any], str]) -> str:
    """The restriction to visible namespaces, to be appended to a condition about partitions."""
    condition = ""
    if one.namespaces is not None:
        condition += f" AND o.ns = ANY({bind(list(one.namespaces))}::text[])"
    if not one.reserved:
        condition += f" AND NOT o.ns = ANY({bind(list(reserved_names()))}::text[])"
        condition += f" AND NOT (o.ns >= {bind(RESERVED_FROM)} AND o.ns < {bind(RESERVED_TO)})"
    return condition


class Emitter:
    """Emits the statements of one plan over these partitions, each with its arguments."""

    def __init__(self, plan: Plan, partitions: Iterable[PartitionNumber]) -> None:
        self._query = plan.query
        self._arguments: list[Any] = []
        self._where: list[str] = []
        known = list(partitions)
        alternatives = visible_partitions(plan.query, known)
        self.impossible = not alternatives
        self._parts = sorted({number for one in alternatives for number in one.partitions})
        self._clusters = sorted({entry.cluster for entry in known if entry.number in set(self._parts)})
        visible = []
        for one in alternatives:
            condition = self._in_partitions(one.partitions)
            visible.append(f"({condition}{namespace_condition(one, self._bind)})")
        self._where.append(f"({' OR '.join(visible)})")
        for wanted in plan.conditions:
            self._add(wanted)
        if plan.query.after is not None:
            self._where.append(self._after(plan.query.after))

    def select(self) -> tuple[str, list[Any]]:
        """Its columns are cluster, kind, key, the value sorted by, bare and body."""
        query, direction = self._query, " DESC" if self._query.descending else ""
        order = ", ".join(f"{column}{direction}" for column in self._order())
        sql = (
            f"SELECT k.cluster, k.name AS kind, o.key, o.{query.sort} AS value, o.bare, o.body"  # noqa: S608
            f" FROM obj o JOIN part k ON k.id = o.part WHERE {' AND '.join(self._where)} ORDER BY {order}"
        )
        if query.limit is not None:
            sql += f" LIMIT {self._bind(query.limit)}::bigint"
        if query.skip:
            sql += f" OFFSET {self._bind(query.skip)}::bigint"
        return sql, self._arguments

    def count(self) -> tuple[str, list[Any]]:
        where = " AND ".join(self._where)
        return f"SELECT count(*) FROM obj o JOIN part k ON k.id = o.part WHERE {where}", self._arguments  # noqa: S608

    def _in_partitions(self, numbers: tuple[int, ...]) -> str:
        if len(numbers) == 1:
            return f"o.part = {self._bind(numbers[0])}"  # then an index gives the rows in their order
        return f"o.part = ANY({self._bind(list(numbers))}::bigint[])"

    def _bind(self, value: Any) -> str:
        self._arguments.append(value)
        return f"${len(self._arguments)}"

    def _tokens(self, tokens: Iterable[str]) -> str:
        stored = [stored_token(token, part=part, cluster="") for token in tokens for part in self._parts]
        return f"{self._bind(stored)}::text[]"

    def _add(self, condition: Condition) -> None:
        match condition:
            case HasToken(tokens, wanted):
                self._where.append(f"{'' if wanted else 'NOT '}o.tok && {self._tokens(tokens)}")
            case LabelNumber():
                self._add_number(condition)
            case Column("ns", "=", str(namespace)) if namespace:
                # '0' follows '/', so this range of the primary key has all keys of the namespace.
                begin, end = self._bind(f"{namespace}/"), self._bind(f"{namespace}0")
                self._where.append(f"o.key >= {begin} AND o.key < {end}")
            case Column(name, operator, value):
                self._where.append(f"o.{name} {operator} {self._bind(value)}")
            case NameContains(text):
                self._where.append(f"strpos(o.name, {self._bind(text)}) > 0")
            case OwnedBy(uid):
                owner, clusters = self._bind(owner_token(uid)), self._bind(self._clusters)
                self._where.append(_OWNED.format(owner=owner, clusters=clusters))

    def _add_number(self, condition: LabelNumber) -> None:
        begin = label_token(condition.key, "")
        tokens, mark = self._tokens([label_key_token(condition.key)]), self._bind(begin)
        number = self._bind(condition.number)
        self._where.append(
            f"o.tok && {tokens} AND EXISTS (SELECT 1 FROM unnest(o.tok) t,"  # noqa: S608 - marks and an operator of ours
            f" LATERAL (SELECT substr(t, strpos(t, '/') + 1) AS plain) p,"
            f" LATERAL (SELECT substr(p.plain, length({mark}) + 1)"
            f" AS value) v WHERE starts_with(p.plain, {mark}) AND CASE WHEN v.value ~ '^[+-]?[0-9]{{1,19}}$'"
            f" THEN v.value::numeric {condition.operator} {number}::bigint ELSE false END)"
        )

    def _order(self) -> list[str]:
        several = len(self._parts) > 1
        partition, last = ["k.cluster", "k.name"] if several else [], [] if self._query.sort is Sort.KEY else ["o.key"]
        return [f"o.{self._query.sort}", *partition, *last]

    def _after(self, after: Position) -> str:
        beyond = "<" if self._query.descending else ">"
        columns, values = ["o." + self._query.sort, "k.cluster", "k.name"], [after.value, after.cluster, after.kind]
        if self._query.sort is not Sort.KEY:
            columns.append("o.key")
            values.append(after.key)
        marks = [self._bind(value) for value in values]
        # The first comparison says the same less exactly, in a form for which PostgreSQL can use an index.
        return f"{columns[0]} {beyond}= {marks[0]} AND ({', '.join(columns)}) {beyond} ({', '.join(marks)})"
