"""A word of a search, and the SQL conditions under which an object of a cluster's file contains it."""

from typing import Any

import apsw
import msgspec

from kairship.index.search.model import SHORT, Rank, names_kind
from kairship.index.sqlite.statements import rows
from kairship.index.tokens import IMAGE, LABEL, NAMESPACE
from kairship.kube import Resource

RARE = 4000
_MOST_TRIGRAMS = 12
_LAST = "\U0010ffff"
_POSTED = "SELECT obj AS id FROM post WHERE tok IN (SELECT value FROM json_each(?))"

Values = tuple[Any, ...]


class SqlCondition(msgspec.Struct, frozen=True):
    sql: str
    arguments: Values = ()

    def __and__(self, other: "SqlCondition") -> "SqlCondition":
        return SqlCondition(f"{self.sql} AND {other.sql}", (*self.arguments, *other.arguments))

    def __or__(self, other: "SqlCondition") -> "SqlCondition":
        return SqlCondition(f"({self.sql} OR {other.sql})", (*self.arguments, *other.arguments))

    def __invert__(self) -> "SqlCondition":
        return SqlCondition(f"NOT ({self.sql})", self.arguments)


class SearchWord:
    """One word, and the kinds and tokens of this file that contain it."""

    def __init__(self, db: apsw.Connection, text: str, kinds: dict[int, Resource], names: dict[int, str]) -> None:
        self.text = text
        self._db = db
        self.parts = [number for number, resource in kinds.items() if names_kind(text, names[number], resource)]
        self.labels = self._tokens(LABEL, begin="instr({text}, '=' || ?) > 0", among="%=%")
        self.images = self._tokens(IMAGE, begin="instr('/' || {text}, '/' || ?) > 0", among="%")
        spaces = self._tokens(NAMESPACE, begin="instr('/' || {text}, '/' || ?) > 0", among="%")
        self.spaces = spaces
        self.namespaces = sorted({text[len(NAMESPACE) :] for text in spaces.values()})

    def conditions_by_rank(self) -> dict[Rank, SqlCondition]:
        """The condition of each rank, without the ranks that nothing in this file can have."""
        begins = SqlCondition("(o.name >= ? AND o.name < ?)", (self.text, self.text + _LAST))
        found = {Rank.NAME_BEGINS: begins}
        if len(self.text) >= SHORT:
            found[Rank.NAME] = SqlCondition("instr(lower(o.name), ?) > 0", (self.text,))
        if self.parts:
            found[Rank.KIND] = among("o.part", self.parts)
        if self.namespaces:
            found[Rank.NAMESPACE] = among("o.ns", self.namespaces)
        for rank, tokens in ((Rank.LABEL, self.labels), (Rank.IMAGE, self.images)):
            if tokens:
                found[rank] = SqlCondition(f"o.id IN ({_POSTED})", (_json(list(tokens)),))
        return found

    def anywhere(self) -> SqlCondition:
        first, *others = self.conditions_by_rank().values()
        for other in others:
            first |= other
        return first

    def candidates_by_rank(self) -> dict[Rank, SqlCondition]:
        """For the same ranks, SQL for the ids of the objects that may have the word there, perhaps with duplicates."""
        begins = SqlCondition("SELECT id FROM obj WHERE name >= ? AND name < ?", (self.text, self.text + _LAST))
        found = {Rank.NAME_BEGINS: begins}
        if len(self.text) >= SHORT:
            trigrams = SqlCondition("SELECT rowid AS id FROM trigram WHERE trigram MATCH ?", (_trigrams(self.text),))
            found = {Rank.NAME_BEGINS: trigrams, Rank.NAME: trigrams}
        if self.parts:
            sql = "SELECT id FROM obj WHERE part IN (SELECT value FROM json_each(?))"
            found[Rank.KIND] = SqlCondition(sql, (_json(self.parts),))
        for rank, tokens in (
            (Rank.NAMESPACE, self.spaces),
            (Rank.LABEL, self.labels),
            (Rank.IMAGE, self.images),
        ):
            if tokens:
                found[rank] = SqlCondition(_POSTED, (_json(list(tokens)),))
        return found

    def candidates(self) -> SqlCondition:
        """The candidates of all ranks."""
        found = dict.fromkeys(self.candidates_by_rank().values())
        sql = " UNION ALL ".join(f"SELECT id FROM ({one.sql})" for one in found)  # noqa: S608 - from here
        return SqlCondition(sql, tuple(value for one in found for value in one.arguments))

    def is_rare(self, candidates: SqlCondition) -> bool:
        """Whether there are fewer than `RARE` candidates, counted no further than that."""
        sql = f"SELECT count(*) FROM (SELECT 1 FROM ({candidates.sql}) LIMIT {RARE})"  # noqa: S608 - from here
        ((count,),) = rows(self._db, sql, candidates.arguments)
        return int(count) < RARE

    def _tokens(self, mark: str, *, begin: str, among: str) -> dict[int, str]:
        """The tokens of this type that contain the word; a short word must be at a beginning."""
        text = f"lower(substr(text, {len(mark) + 1}))"
        condition = "instr({text}, ?) > 0" if len(self.text) >= SHORT else begin
        return dict(
            rows(
                self._db,
                "SELECT id, text FROM tok WHERE text >= ? AND text < ? AND text LIKE ?"  # noqa: S608 - from here
                f" AND {condition.format(text=text)}",
                (mark, mark[0] + ";", f"{mark}{among}", self.text),  # ';' follows ':'
            )
        )


def among(column: str, values: Any) -> SqlCondition:
    condition = f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608 - a column's name from here
    return SqlCondition(condition, (_json(list(values)),))


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()


def _trigrams(word: str) -> str:
    """The trigrams of a word, quoted. A name that has all of them need not have the word, so it is checked again."""
    trigrams = dict.fromkeys(word[start : start + SHORT] for start in range(len(word) - SHORT + 1))
    return " ".join(_quoted(trigram) for trigram in list(trigrams)[:_MOST_TRIGRAMS])


def _quoted(trigram: str) -> str:
    escaped = trigram.replace('"', '""')
    return f'"{escaped}"'
