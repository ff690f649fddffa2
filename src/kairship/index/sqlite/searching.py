"""Search in the file of one cluster.

If some word is rare, what has it is looked up and the other words are checked on it. If all are common, objects are
gone through in the order of their names, rank by rank, until the page is full: common words fill it soon. Which of the
two is taken changes nothing in what is found, or in its order.
"""

import apsw
import msgspec

from kairship.index.query import RESERVED_FROM, RESERVED_NAMESPACES, RESERVED_TO, Query, allowed
from kairship.index.search import Hit, Search, SearchPosition
from kairship.index.sqlite.search_words import Condition, Values, Word, among
from kairship.index.sqlite.statements import one, rows
from kairship.kube import Resource


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

    def _words(self) -> list[Word]:
        return [Word(self._db, text, self._kinds, self._names) for text in self._asked.words]

    def _rare(self, words: list[Word]) -> Condition | None:
        """The candidates of a word that has few."""
        # The longest is the likeliest to be rare.
        for word in sorted(words, key=lambda word: -len(word.text)):
            if word.is_rare(candidates := word.candidates()):
                return candidates
        return None

    def _scope(self) -> Condition | None:
        """What the caller may see and asks for; None if that is nothing."""
        asked = Query(scopes=self._asked.scopes, kinds=self._asked.kinds)
        partitions = ((number, self._cluster, kind) for number, kind in self._names.items())
        visible: Condition | None = None
        for alternative in allowed(asked, partitions):
            condition = among("o.part", alternative.partitions)
            if alternative.namespaces is not None:
                condition &= among("o.ns", alternative.namespaces)
            if not alternative.reserved:
                condition &= ~among("o.ns", RESERVED_NAMESPACES)
                condition &= Condition("NOT (o.ns >= ? AND o.ns < ?)", (RESERVED_FROM, RESERVED_TO))
            visible = condition if visible is None else visible | Condition(f"({condition.sql})", condition.arguments)
        if visible is not None and self._asked.namespace:
            visible &= Condition("o.ns = ?", (self._asked.namespace,))
        return visible

    def _of_rare(self, words: list[Word], rare: Condition, visible: Condition) -> list[tuple[int, int]]:
        condition = visible
        for word in words:
            condition &= word.anywhere()
        ranks = words[0].in_parts()
        cases = " ".join(f"WHEN {found.sql} THEN {rank:d}" for rank, found in ranks.items())
        case_arguments = [value for found in ranks.values() for value in found.arguments]
        source, given = _source(rare)
        after, position = self._asked.after, Condition("1")
        if after is not None:
            behind = self._behind(after)
            position = Condition(
                f"(rank > ? OR (rank = ? AND {behind.sql}))", (after.rank, after.rank, *behind.arguments)
            )
        sql = (
            f"SELECT id, rank FROM (SELECT o.id, o.name, k.name AS kind, o.ns, CASE {cases} END AS rank FROM {source}"  # noqa: S608
            f" JOIN part k ON k.id = o.part WHERE {condition.sql}) o WHERE {position.sql}"
            " ORDER BY rank, o.name, o.kind, o.ns LIMIT ?"
        )
        arguments = (*case_arguments, *given, *condition.arguments, *position.arguments, self._asked.limit)
        return [(number, rank) for number, rank in rows(self._db, sql, arguments)]

    def _by_rank(self, words: list[Word], visible: Condition) -> list[tuple[int, int]]:
        others = visible
        for word in words[1:]:
            others &= word.anywhere()
        found: list[tuple[int, int]] = []
        better: Condition | None = None
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

    def _behind(self, after: SearchPosition) -> Condition:
        """Of the same rank, behind the position."""
        if self._cluster == after.cluster:
            return Condition("(o.name, o.kind, o.ns) > (?, ?, ?)", (after.name, after.kind, after.namespace))
        return Condition(f"o.name {'>=' if self._cluster > after.cluster else '>'} ?", (after.name,))

    def _hit(self, number: int, rank: int) -> Hit:
        row = one(self._db, "SELECT part, ns, name, uid, created, body FROM obj WHERE id = ?", (number,))
        if row is None:
            raise apsw.CorruptError("a row that was found is not there")
        part, namespace, name, uid, created, body = row
        position = SearchPosition(rank, name, self._cluster, self._names[part], namespace)
        return Hit(position, self._kinds[part], uid, created, body)


def _source(candidates: Condition | None) -> tuple[str, Values]:
    """Where to look for rows: at the candidates, or at everything in the order of names."""
    if candidates is None:
        return "obj o INDEXED BY obj_any", ()
    # Made unique first: the same object may be found by its name and by its labels.
    unique = f"(SELECT DISTINCT id FROM ({candidates.sql}))"  # noqa: S608 - from here
    return f"{unique} c CROSS JOIN obj o ON o.id = c.id", candidates.arguments
