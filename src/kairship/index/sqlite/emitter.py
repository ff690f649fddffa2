"""Emits the SQL of a plan, for the file of one cluster.

The SQL tells SQLite where to begin. A single token gives the rows in the order of its postings, which is that of their
keys. With several conditions the rarest token leads: its postings give the rows, and the other conditions are probed.
If even the rarest token is common and only a page is wanted, the rows are walked in their order and probed, because
sorting all matches would cost more. The order of rows and their position need no columns beyond those of the indexes of
`obj`.
"""

from typing import Any, NamedTuple

import apsw

from kairship.index.query import (
    RESERVED_FROM,
    RESERVED_TO,
    Column,
    HasToken,
    LabelNumber,
    NameContains,
    OwnedBy,
    Plan,
    Position,
    Sort,
    visible_partitions,
)
from kairship.index.selectors import BadSelectorError
from kairship.index.sqlite.statements import rows
from kairship.index.tokens import LABEL, owner_token
from kairship.resources import reserved_names

_COMMON = 2000
# Reserved namespaces as ranges of keys, which are in every index: '0' follows '/'. Only keys with a namespace have '/'.
_NOT_IN_RANGE = " AND NOT (o.key >= ? AND o.key < ?)"
_NOT_WITH_PREFIX = " AND NOT (o.key >= ? AND o.key < ? AND instr(o.key, '/') > 0)"
_MOST_VALUES = 10_000  # SQLite accepts about three times as many arguments
_OWNED = """(WITH RECURSIVE tree(id, uid) AS (
  SELECT c.id, c.uid FROM tok t JOIN post p ON p.tok = t.id JOIN obj c ON c.id = p.obj WHERE t.part = 0 AND t.text = ?
  UNION
  SELECT c.id, c.uid FROM tree JOIN tok t ON t.part = 0 AND t.text = 'o:' || tree.uid
  JOIN post p ON p.tok = t.id JOIN obj c ON c.id = p.obj
) SELECT id AS obj FROM tree)"""


class Statement(NamedTuple):
    sql: str
    arguments: tuple[Any, ...]


class Emitter:
    """Emits the statements of one plan. It looks up kinds and tokens in the file, within the caller's transaction."""

    def __init__(self, db: apsw.Connection, cluster: str, plan: Plan) -> None:
        self._db = db
        self._cluster = cluster
        self._query = plan.query
        self._is_walk = plan.is_walk
        self.kinds = self._known_kinds()
        self._where: list[str] = []
        self._arguments: list[Any] = []
        self._parts: set[int] = set()
        self._impossible = False
        self._alternatives = 0
        self._leads = False
        self._namespaces: list[str] = []
        self._restrict()
        wanted = self._split(plan)
        self._source, self._source_arguments = self._lead(plan, wanted)

    @property
    def is_sorted_first(self) -> bool:
        """Whether all matches are found before the first row is returned, so that the other rows are only fetched."""
        return self._leads and not self._is_walk

    def select(self, *, bodies_only: bool = False) -> Statement | None:
        """Its columns are kind, key, the value sorted by, bare and body, or only body. None if nothing can match."""
        if self._impossible:
            return None
        query = self._query
        where, arguments = self._conditions()
        several = len(self._parts) > 1
        direction = " DESC" if query.descending else ""
        order = [self._sort_column, *(["k.name"] if several else []), *([] if query.sort is Sort.KEY else ["o.key"])]
        ordered = f" ORDER BY {', '.join(column + direction for column in order)}"
        columns = "SELECT o.body FROM" if bodies_only else f"SELECT o.part, o.key, o.{query.sort}, o.bare, o.body FROM"
        source, limit = f"{self._source}{self._kind_source()}", -1 if query.limit is None else query.limit
        if self._is_walk or (query.limit is None and not self._leads):
            sql = f"{columns} {source} WHERE {where}{ordered} LIMIT ? OFFSET ?"
            return Statement(sql, (*arguments, limit, query.skip))
        # The rows are first found and sorted without their bodies, and then fetched. The limit, even one of -1, keeps
        # SQLite from merging the two queries; a cross join keeps the order of its left side.
        found = f"SELECT o.id FROM {source} WHERE {where}{ordered} LIMIT ? OFFSET ?"  # noqa: S608 - names from here
        return Statement(
            f"{columns} ({found}) found CROSS JOIN obj o ON o.id = found.id", (*arguments, limit, query.skip)
        )

    def count(self) -> Statement | None:
        if self._impossible:
            return None
        where, arguments = self._conditions()
        sql = f"SELECT count(*) FROM {self._source}{self._kind_source()} WHERE {where}"  # noqa: S608 - names from here
        return Statement(sql, tuple(arguments))

    def _known_kinds(self) -> dict[int, str]:
        kinds = self._query.kinds
        if kinds is None:
            return dict(rows(self._db, "SELECT id, name FROM part"))
        sql = f"SELECT id, name FROM part WHERE name IN ({_marks(kinds)})"  # noqa: S608 - marks alone
        return dict(rows(self._db, sql, tuple(kinds)))

    def _kind_source(self) -> str:
        return " JOIN part k ON k.id = o.part" if len(self._parts) > 1 else ""

    @property
    def _key_column(self) -> str:
        """The key of the postings when these are walked in their order, and otherwise that of the rows."""
        return "d.key" if self._is_walk and self._leads else "o.key"

    @property
    def _sort_column(self) -> str:
        return self._key_column if self._query.sort is Sort.KEY else f"o.{self._query.sort}"

    def _conditions(self) -> tuple[str, list[Any]]:
        where, arguments = list(self._where), [*self._source_arguments, *self._arguments]
        for namespace in self._namespaces:
            # '0' follows '/', so this range of the index has all keys of the namespace.
            where.append(f"{self._key_column} >= ? AND {self._key_column} < ?")
            arguments += (f"{namespace}/", f"{namespace}0")
        if self._query.after is not None:
            condition, values = self._after(self._query.after)
            where.append(condition)
            arguments += values
        return " AND ".join(where), arguments

    def _add(self, condition: str, *arguments: Any) -> None:
        self._where.append(condition)
        self._arguments += arguments

    def _restrict(self) -> None:
        """Restricts the rows to what the caller may see. Without a scope the caller may see nothing."""
        alternatives: list[str] = []
        arguments: list[Any] = []
        for alternative in visible_partitions(
            self._query, ((number, self._cluster, kind) for number, kind in self.kinds.items())
        ):
            self._parts.update(alternative.partitions)
            condition = f"o.part IN ({_marks(alternative.partitions)})"
            arguments += alternative.partitions
            if alternative.namespaces is not None:
                condition += f" AND o.ns IN ({_marks(alternative.namespaces)})"
                arguments += alternative.namespaces
            if not alternative.reserved:
                condition += _NOT_IN_RANGE * len(reserved_names()) + _NOT_WITH_PREFIX
                arguments += (bound for name in reserved_names() for bound in (f"{name}/", f"{name}0"))
                arguments += (RESERVED_FROM, RESERVED_TO)
            alternatives.append(condition)
        self._alternatives = len(alternatives)
        if alternatives:
            self._add(alternatives[0] if len(alternatives) == 1 else f"({' OR '.join(alternatives)})", *arguments)
        else:
            self._impossible = True

    def _split(self, plan: Plan) -> list[tuple[int, ...]]:
        """Returns the numbers of the tokens that rows must have, and adds all other conditions to the SQL."""
        wanted: list[tuple[int, ...]] = []
        for condition in plan.conditions:
            match condition:
                case HasToken(tokens, True):
                    wanted.append(self._numbers(tokens))
                case HasToken(tokens, _):
                    if numbers := self._numbers(tokens):
                        self._add(f"NOT {_probe(numbers)}", *numbers)
                case LabelNumber():
                    wanted.append(self._compared(condition))
                case Column("ns", "=", str(namespace)) if namespace:
                    self._namespaces.append(namespace)
                case Column(name, operator, value):
                    self._add(f"o.{name} {operator} ?", value)
                case NameContains(text):
                    self._add("instr(o.name, ?) > 0", text)
                case OwnedBy():
                    pass  # `_lead` begins with it
        if not all(wanted):
            self._impossible = True
        return wanted

    def _lead(self, plan: Plan, wanted: list[tuple[int, ...]]) -> tuple[str, list[Any]]:
        if self._impossible:
            return "", []
        owner = next((condition.uid for condition in plan.conditions if isinstance(condition, OwnedBy)), None)
        if owner is not None:
            for numbers in wanted:
                self._add(_probe(numbers), *numbers)
            self._leads = True
            return f"{_OWNED} d CROSS JOIN obj o ON o.id = d.obj", [owner_token(owner)]
        by_rarity = sorted((0 if self._is_walk else self._occurrences(numbers), numbers) for numbers in wanted)
        self._leads = bool(by_rarity) and (self._query.limit is None or by_rarity[0][0] < _COMMON)
        for _, numbers in by_rarity[1:] if self._leads else by_rarity:
            self._add(_probe(numbers), *numbers)
        if not self._leads:
            # `obj_name` covers all columns of the query, so the rows with their bodies are not read.
            by_name = any(isinstance(condition, NameContains) for condition in plan.conditions)
            return "obj o INDEXED BY obj_name" if by_name and self._alternatives == 1 else "obj o", []
        numbers = by_rarity[0][1]
        self._where.insert(0, f"d.tok IN ({_marks(numbers)})")
        self._arguments[:0] = numbers
        return "post d CROSS JOIN obj o ON o.id = d.obj", []

    def _after(self, after: Position) -> tuple[str, list[Any]]:
        beyond = "<" if self._query.descending else ">"
        column = self._sort_column

        def is_beyond(one: str, other: str) -> bool:
            return one < other if self._query.descending else one > other

        if self._cluster != after.cluster:
            return f"{column} {beyond}{'=' if is_beyond(self._cluster, after.cluster) else ''} ?", [after.value]
        if len(self._parts) > 1:
            return f"({column}, k.name, o.key) {beyond} (?, ?, ?)", [after.value, after.kind, after.key]
        (part,) = self._parts
        if (kind := self.kinds[part]) != after.kind:
            return f"{column} {beyond}{'=' if is_beyond(kind, after.kind) else ''} ?", [after.value]
        if self._query.sort is Sort.KEY:
            return f"{column} {beyond} ?", [after.key]
        return f"({column}, o.key) {beyond} (?, ?)", [after.value, after.key]

    def _numbers(self, tokens: tuple[str, ...]) -> tuple[int, ...]:
        found = rows(
            self._db,
            f"SELECT id FROM tok WHERE part IN ({_marks(self._parts)}) AND text IN ({_marks(tokens)})",  # noqa: S608
            (*self._parts, *tokens),
        )
        return tuple(number for (number,) in found)

    def _compared(self, condition: LabelNumber) -> tuple[int, ...]:
        begin, end = f"{LABEL}{condition.key}=", f"{LABEL}{condition.key}>"  # '>' follows '='
        found = rows(
            self._db,
            f"SELECT id, text FROM tok WHERE part IN ({_marks(self._parts)}) AND text >= ? AND text < ?",  # noqa: S608
            (*self._parts, begin, end),
        )
        numbers = tuple(number for number, text in found if condition.holds(text[len(begin) :]))
        if len(numbers) > _MOST_VALUES:
            raise BadSelectorError(f"more than {_MOST_VALUES} values of {condition.key} match: narrow the comparison")
        return numbers

    def _occurrences(self, numbers: tuple[int, ...]) -> int:
        """How many rows have one of these tokens, counted only up to `_COMMON`."""
        ((count,),) = rows(
            self._db,
            f"SELECT count(*) FROM (SELECT 1 FROM post WHERE tok IN ({_marks(numbers)}) LIMIT {_COMMON})",  # noqa: S608
            numbers,
        )
        return int(count)


def _probe(numbers: tuple[int, ...]) -> str:
    return f"EXISTS (SELECT 1 FROM post WHERE tok IN ({_marks(numbers)}) AND key = o.key AND obj = o.id)"  # noqa: S608 - marks


def _marks(values: Any) -> str:
    return ", ".join("?" * len(values))
