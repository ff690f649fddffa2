"""Search in the file of one cluster.

If some word is rare, what has it is looked up and the other words are checked on it. If all are common, objects are
gone through in the order of their names, rank by rank, until the page is full: common words fill it soon. Which of the
two is taken changes nothing in what is found, or in its order.
"""

from typing import Any

import apsw
import msgspec

from kairship.index.query import RESERVED_FROM, RESERVED_NAMESPACES, RESERVED_TO, Query, allowed
from kairship.index.search import SHORT, Hit, Rank, Search, SearchPosition, names_kind
from kairship.index.sqlite.statements import one, rows
from kairship.index.tokens import IMAGE, LABEL, NAMESPACE
from kairship.kube import Resource

_RARE = 4000
_MOST_TRIGRAMS = 12
_LAST = "\U0010ffff"

_Values = tuple[Any, ...]


class _Condition(msgspec.Struct, frozen=True):
    sql: str
    arguments: _Values = ()

    def __and__(self, other: "_Condition") -> "_Condition":
        return _Condition(f"{self.sql} AND {other.sql}", (*self.arguments, *other.arguments))

    def __or__(self, other: "_Condition") -> "_Condition":
        return _Condition(f"({self.sql} OR {other.sql})", (*self.arguments, *other.arguments))

    def __invert__(self) -> "_Condition":
        return _Condition(f"NOT ({self.sql})", self.arguments)


class _Word:
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

    def in_parts(self) -> dict[Rank, _Condition]:
        """By the rank that it gives; without those that nothing in this file can have."""
        begins = _Condition("(o.name >= ? AND o.name < ?)", (self.text, self.text + _LAST))
        found = {Rank.NAME_BEGINS: begins}
        if len(self.text) >= SHORT:
            found[Rank.NAME] = _Condition("instr(lower(o.name), ?) > 0", (self.text,))
        if self.parts:
            found[Rank.KIND] = _among("o.part", self.parts)
        if self.namespaces:
            found[Rank.NAMESPACE] = _among("o.ns", self.namespaces)
        for rank, tokens in ((Rank.LABEL, self.labels), (Rank.IMAGE, self.images)):
            if tokens:
                found[rank] = _Condition(f"o.id IN ({_POSTED})", (_json(list(tokens)),))
        return found

    def anywhere(self) -> _Condition:
        first, *others = self.in_parts().values()
        for other in others:
            first |= other
        return first

    def candidates_by_rank(self) -> dict[Rank, _Condition]:
        """The numbers of the objects that may have it there, each perhaps several times; of the same ranks."""
        begins = _Condition("SELECT id FROM obj WHERE name >= ? AND name < ?", (self.text, self.text + _LAST))
        found = {Rank.NAME_BEGINS: begins}
        if len(self.text) >= SHORT:
            trigrams = _Condition("SELECT rowid AS id FROM trigram WHERE trigram MATCH ?", (_trigrams(self.text),))
            found = {Rank.NAME_BEGINS: trigrams, Rank.NAME: trigrams}
        if self.parts:
            sql = "SELECT id FROM obj WHERE part IN (SELECT value FROM json_each(?))"
            found[Rank.KIND] = _Condition(sql, (_json(self.parts),))
        for rank, tokens in (
            (Rank.NAMESPACE, self.spaces),
            (Rank.LABEL, self.labels),
            (Rank.IMAGE, self.images),
        ):
            if tokens:
                found[rank] = _Condition(_POSTED, (_json(list(tokens)),))
        return found

    def candidates(self) -> _Condition:
        """All of them."""
        found = {one.sql + repr(one.arguments): one for one in self.candidates_by_rank().values()}.values()
        sql = " UNION ALL ".join(f"SELECT id FROM ({one.sql})" for one in found)  # noqa: S608 - from here
        return _Condition(sql, tuple(value for one in found for value in one.arguments))

    def is_rare(self, candidates: _Condition) -> bool:
        """Whether there are few, counted no further than it matters."""
        sql = f"SELECT count(*) FROM (SELECT 1 FROM ({candidates.sql}) LIMIT {_RARE})"  # noqa: S608 - from here
        ((count,),) = rows(self._db, sql, candidates.arguments)
        return int(count) < _RARE

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


_POSTED = "SELECT obj AS id FROM post WHERE tok IN (SELECT value FROM json_each(?))"


class Searching:
    """One question to one file, within the caller's transaction."""

    def __init__(self, db: apsw.Connection, cluster: str, asked: Search) -> None:
        self._db = db
        self._cluster = cluster
        self._asked = asked
        found = rows(db, "SELECT id, name, resource FROM part")
        self._names: dict[int, str] = {number: name for number, name, _ in found}
        self._kinds = {number: msgspec.json.decode(resource, type=Resource) for number, _, resource in found}
        self._visible = self._scope()

    def page(self) -> list[Hit]:
        """The first of what is found behind the position, at most as many as are asked for."""
        if self._visible is None:
            return []
        words = self._words()
        rare = self._rare(words)
        found = self._of_rare(words, rare, self._visible) if rare else self._by_rank(words, self._visible)
        return [self._hit(number, rank) for number, rank in found]

    def counts(self) -> dict[str, int]:
        """By kind, whatever the position."""
        if self._visible is None:
            return {}
        words = self._words()
        rare = self._rare(words)
        condition = self._visible
        for word in words:
            condition &= word.anywhere()
        source, given = _source(rare)
        sql = f"SELECT o.part, count(*) FROM {source} WHERE {condition.sql} GROUP BY o.part"  # noqa: S608 - from here
        return {self._names[part]: count for part, count in rows(self._db, sql, (*given, *condition.arguments))}

    def _words(self) -> list[_Word]:
        return [_Word(self._db, text, self._kinds, self._names) for text in self._asked.words]

    def _rare(self, words: list[_Word]) -> _Condition | None:
        """The candidates of a word that has few."""
        # The longest is the likeliest to be rare.
        for word in sorted(words, key=lambda word: -len(word.text)):
            if word.is_rare(candidates := word.candidates()):
                return candidates
        return None

    def _scope(self) -> _Condition | None:
        """What the caller may see and asks for; None if that is nothing."""
        asked = Query(scopes=self._asked.scopes, kinds=self._asked.kinds)
        partitions = ((number, self._cluster, kind) for number, kind in self._names.items())
        visible: _Condition | None = None
        for alternative in allowed(asked, partitions):
            condition = _among("o.part", alternative.partitions)
            if alternative.namespaces is not None:
                condition &= _among("o.ns", alternative.namespaces)
            if not alternative.reserved:
                condition &= ~_among("o.ns", RESERVED_NAMESPACES)
                condition &= _Condition("NOT (o.ns >= ? AND o.ns < ?)", (RESERVED_FROM, RESERVED_TO))
            visible = condition if visible is None else visible | _Condition(f"({condition.sql})", condition.arguments)
        if visible is not None and self._asked.namespace:
            visible &= _Condition("o.ns = ?", (self._asked.namespace,))
        return visible

    def _of_rare(self, words: list[_Word], rare: _Condition, visible: _Condition) -> list[tuple[int, int]]:
        condition = visible
        for word in words:
            condition &= word.anywhere()
        ranks = words[0].in_parts()
        cases = " ".join(f"WHEN {found.sql} THEN {rank:d}" for rank, found in ranks.items())
        case_arguments = [value for found in ranks.values() for value in found.arguments]
        source, given = _source(rare)
        after, position = self._asked.after, _Condition("1")
        if after is not None:
            behind = self._behind(after)
            position = _Condition(
                f"(rank > ? OR (rank = ? AND {behind.sql}))", (after.rank, after.rank, *behind.arguments)
            )
        sql = (
            f"SELECT id, rank FROM (SELECT o.id, o.name, k.name AS kind, o.ns, CASE {cases} END AS rank FROM {source}"  # noqa: S608
            f" JOIN part k ON k.id = o.part WHERE {condition.sql}) o WHERE {position.sql}"
            " ORDER BY rank, o.name, o.kind, o.ns LIMIT ?"
        )
        arguments = (*case_arguments, *given, *condition.arguments, *position.arguments, self._asked.limit)
        return [(number, rank) for number, rank in rows(self._db, sql, arguments)]

    def _by_rank(self, words: list[_Word], visible: _Condition) -> list[tuple[int, int]]:
        others = visible
        for word in words[1:]:
            others &= word.anywhere()
        found: list[tuple[int, int]] = []
        better: _Condition | None = None
        after = self._asked.after
        for rank, condition in words[0].in_parts().items():
            wanted = condition if better is None else condition & ~better
            better = condition if better is None else better | condition
            if (after is not None and rank < after.rank) or len(found) >= self._asked.limit:
                continue
            if after is not None and rank == after.rank:
                wanted &= self._behind(after)
            wanted &= others
            candidates = words[0].candidates_by_rank()[rank]
            source, given = _source(candidates if words[0].is_rare(candidates) else None)
            sql = (
                f"SELECT o.id FROM (SELECT o.id, o.name, o.part, o.ns, k.name AS kind FROM {source}"  # noqa: S608
                f" JOIN part k ON k.id = o.part) o WHERE {wanted.sql} ORDER BY o.name, o.kind, o.ns LIMIT ?"
            )
            arguments = (*given, *wanted.arguments, self._asked.limit - len(found))
            found += [(number, int(rank)) for (number,) in rows(self._db, sql, arguments)]
        return found

    def _behind(self, after: SearchPosition) -> _Condition:
        """Of the same rank, behind the position."""
        if self._cluster == after.cluster:
            return _Condition("(o.name, o.kind, o.ns) > (?, ?, ?)", (after.name, after.kind, after.namespace))
        return _Condition(f"o.name {'>=' if self._cluster > after.cluster else '>'} ?", (after.name,))

    def _hit(self, number: int, rank: int) -> Hit:
        row = one(self._db, "SELECT part, ns, name, uid, created, body FROM obj WHERE id = ?", (number,))
        if row is None:
            raise apsw.CorruptError("a row that was found is not there")
        part, namespace, name, uid, created, body = row
        position = SearchPosition(rank, name, self._cluster, self._names[part], namespace)
        return Hit(position, self._kinds[part], uid, created, body)


def _source(candidates: _Condition | None) -> tuple[str, _Values]:
    """Where to look for rows: at the candidates, or at everything in the order of names."""
    if candidates is None:
        return "obj o INDEXED BY obj_any", ()
    # Made unique first: the same object may be found by its name and by its labels.
    unique = f"(SELECT DISTINCT id FROM ({candidates.sql}))"  # noqa: S608 - from here
    return f"{unique} c CROSS JOIN obj o ON o.id = c.id", candidates.arguments


def _among(column: str, values: Any) -> _Condition:
    condition = f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608 - a column's name from here
    return _Condition(condition, (_json(list(values)),))


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()


def _trigrams(word: str) -> str:
    """All of them, quoted. What has them all may have them elsewhere: it is looked at again."""
    parts = dict.fromkeys(word[place : place + SHORT] for place in range(len(word) - SHORT + 1))
    return " ".join(_quoted(part) for part in list(parts)[:_MOST_TRIGRAMS])


def _quoted(part: str) -> str:
    escaped = part.replace('"', '""')
    return f'"{escaped}"'
