"""A word of a search: where in the file of a cluster it is found."""

from typing import Any

import apsw
import msgspec

from kairship.index.search import SHORT, Rank, names_kind
from kairship.index.sqlite.statements import rows
from kairship.index.tokens import IMAGE, LABEL, NAMESPACE
from kairship.kube import Resource

RARE = 4000
_MOST_TRIGRAMS = 12
_LAST = "\U0010ffff"
_POSTED = "SELECT obj AS id FROM post WHERE tok IN (SELECT value FROM json_each(?))"

Values = tuple[Any, ...]


class Condition(msgspec.Struct, frozen=True):
    sql: str
    arguments: Values = ()

    def __and__(self, other: "Condition") -> "Condition":
        return Condition(f"{self.sql} AND {other.sql}", (*self.arguments, *other.arguments))

    def __or__(self, other: "Condition") -> "Condition":
        return Condition(f"({self.sql} OR {other.sql})", (*self.arguments, *other.arguments))

    def __invert__(self) -> "Condition":
        return Condition(f"NOT ({self.sql})", self.arguments)


class Word:
    """One word, and where it is found in this file."""

    def __init__(self, db: apsw.Connection, text: str, kinds: dict[int, Resource], names: dict[int, str]) -> None:
        self.text = text
        self._db = db
        self.parts = [number for number, resource in kinds.items() if names_kind(text, names[number], resource)]
        self.labels = self._tokens(LABEL, begin="instr({text}, '=' || ?) > 0", among="%=%")
        self.images = self._tokens(IMAGE, begin="instr('/' || {text}, '/' || ?) > 0", among="%")
        spaces = self._tokens(NAMESPACE, begin="instr('/' || {text}, '/' || ?) > 0", among="%")
        self.spaces = spaces
        self.namespaces = sorted({text[len(NAMESPACE) :] for text in spaces.values()})

    def in_parts(self) -> dict[Rank, Condition]:
        """By the rank that it gives; without those that nothing in this file can have."""
        begins = Condition("(o.name >= ? AND o.name < ?)", (self.text, self.text + _LAST))
        found = {Rank.NAME_BEGINS: begins}
        if len(self.text) >= SHORT:
            found[Rank.NAME] = Condition("instr(lower(o.name), ?) > 0", (self.text,))
        if self.parts:
            found[Rank.KIND] = among("o.part", self.parts)
        if self.namespaces:
            found[Rank.NAMESPACE] = among("o.ns", self.namespaces)
        for rank, tokens in ((Rank.LABEL, self.labels), (Rank.IMAGE, self.images)):
            if tokens:
                found[rank] = Condition(f"o.id IN ({_POSTED})", (_json(list(tokens)),))
        return found

    def anywhere(self) -> Condition:
        first, *others = self.in_parts().values()
        for other in others:
            first |= other
        return first

    def candidates_by_rank(self) -> dict[Rank, Condition]:
        """The numbers of the objects that may have it there, each perhaps several times; of the same ranks."""
        begins = Condition("SELECT id FROM obj WHERE name >= ? AND name < ?", (self.text, self.text + _LAST))
        found = {Rank.NAME_BEGINS: begins}
        if len(self.text) >= SHORT:
            trigrams = Condition("SELECT rowid AS id FROM trigram WHERE trigram MATCH ?", (_trigrams(self.text),))
            found = {Rank.NAME_BEGINS: trigrams, Rank.NAME: trigrams}
        if self.parts:
            sql = "SELECT id FROM obj WHERE part IN (SELECT value FROM json_each(?))"
            found[Rank.KIND] = Condition(sql, (_json(self.parts),))
        for rank, tokens in (
            (Rank.NAMESPACE, self.spaces),
            (Rank.LABEL, self.labels),
            (Rank.IMAGE, self.images),
        ):
            if tokens:
                found[rank] = Condition(_POSTED, (_json(list(tokens)),))
        return found

    def candidates(self) -> Condition:
        """All of them."""
        found = dict.fromkeys(self.candidates_by_rank().values())
        sql = " UNION ALL ".join(f"SELECT id FROM ({one.sql})" for one in found)  # noqa: S608 - from here
        return Condition(sql, tuple(value for one in found for value in one.arguments))

    def is_rare(self, candidates: Condition) -> bool:
        """Whether there are few, counted no further than it matters."""
        sql = f"SELECT count(*) FROM (SELECT 1 FROM ({candidates.sql}) LIMIT {RARE})"  # noqa: S608 - from here
        ((count,),) = rows(self._db, sql, candidates.arguments)
        return int(count) < RARE

    def _tokens(self, mark: str, *, begin: str, among: str) -> dict[int, str]:
        """The tokens with this mark that have the word in them; a short word where something begins."""
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


def among(column: str, values: Any) -> Condition:
    condition = f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608 - a column's name from here
    return Condition(condition, (_json(list(values)),))


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()


def _trigrams(word: str) -> str:
    """All of them, quoted. What has them all may have them elsewhere: it is looked at again."""
    parts = dict.fromkeys(word[place : place + SHORT] for place in range(len(word) - SHORT + 1))
    return " ".join(_quoted(part) for part in list(parts)[:_MOST_TRIGRAMS])


def _quoted(part: str) -> str:
    escaped = part.replace('"', '""')
    return f'"{escaped}"'
