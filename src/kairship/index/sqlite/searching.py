"""Searches the file of one cluster.

If some word is rare, the objects that contain it are looked up and the other words are checked on them. If all words
are common, objects are read in the order of their names, rank by rank, until the page is full, which common words fill
soon. The choice between the two changes neither the hits nor their order.
"""

import apsw
import msgspec

from kairship.index.query import RESERVED_FROM, RESERVED_TO, Query, visible_partitions
from kairship.index.search.model import Hit, Search, SearchPosition
from kairship.index.sqlite.search_words import SearchWord, SqlCondition, Values, among
from kairship.index.sqlite.statements import one, rows
from kairship.kube import Resource
from kairship.resources import reserved_names


class Searching:
    """One search in one file, within the caller's transaction."""

    def __init__(self, db: apsw.Connection, cluster: str, search: Search) -> None:
        self._db = db
        self._cluster = cluster
        self._search = search
        found = rows(db, "SELECT id, name, resource FROM part")
        self._names: dict[int, str] = {number: name for number, name, _ in found}
        self._kinds = {number: msgspec.json.decode(resource, type=Resource) for number, _, resource in found}
        self._visible = self._scope()

    def page(self) -> list[Hit]:
        """The first hits after the position of the search, at most as many as its limit."""
        if self._visible is None:
            return []
        words = self._words()
        rare = self._rare(words)
        found = self._of_rare(words, rare, self._visible) if rare else self._by_rank(words, self._visible)
        return [self._hit(number, rank) for number, rank in found]

    def counts(self) -> dict[str, int]:
        """The number of hits by kind, on all pages."""
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

    def _words(self) -> list[SearchWord]:
        return [SearchWord(self._db, text, self._kinds, self._names) for text in self._search.words]

    def _rare(self, words: list[SearchWord]) -> SqlCondition | None:
        """The candidates of a rare word; None if all words are common."""
        # The longest word is the likeliest to be rare.
        for word in sorted(words, key=lambda word: -len(word.text)):
            if word.is_rare(candidates := word.candidates()):
                return candidates
        return None

    def _scope(self) -> SqlCondition | None:
        """The condition for what the caller may see and searches; None if that is nothing."""
        query = Query(scopes=self._search.scopes, kinds=self._search.kinds)
        partitions = ((number, self._cluster, kind) for number, kind in self._names.items())
        visible: SqlCondition | None = None
        for alternative in visible_partitions(query, partitions):
            condition = among("o.part", alternative.partitions)
            if alternative.namespaces is not None:
                condition &= among("o.ns", alternative.namespaces)
            if not alternative.reserved:
                condition &= ~among("o.ns", reserved_names())
                condition &= SqlCondition("NOT (o.ns >= ? AND o.ns < ?)", (RESERVED_FROM, RESERVED_TO))
            visible = (
                condition if visible is None else visible | SqlCondition(f"({condition.sql})", condition.arguments)
            )
        if visible is not None and self._search.namespace:
            visible &= SqlCondition("o.ns = ?", (self._search.namespace,))
        return visible

    def _of_rare(self, words: list[SearchWord], rare: SqlCondition, visible: SqlCondition) -> list[tuple[int, int]]:
        condition = visible
        for word in words:
            condition &= word.anywhere()
        ranks = words[0].conditions_by_rank()
        cases = " ".join(f"WHEN {found.sql} THEN {rank:d}" for rank, found in ranks.items())
        case_arguments = [value for found in ranks.values() for value in found.arguments]
        source, given = _source(rare)
        after, position = self._search.after, SqlCondition("1")
        if after is not None:
            beyond = self._after(after)
            position = SqlCondition(
                f"(rank > ? OR (rank = ? AND {beyond.sql}))", (after.rank, after.rank, *beyond.arguments)
            )
        sql = (
            f"SELECT id, rank FROM (SELECT o.id, o.name, k.name AS kind, o.ns, CASE {cases} END AS rank FROM {source}"  # noqa: S608
            f" JOIN part k ON k.id = o.part WHERE {condition.sql}) o WHERE {position.sql}"
            " ORDER BY rank, o.name, o.kind, o.ns LIMIT ?"
        )
        arguments = (*case_arguments, *given, *condition.arguments, *position.arguments, self._search.limit)
        return [(number, rank) for number, rank in rows(self._db, sql, arguments)]

    def _by_rank(self, words: list[SearchWord], visible: SqlCondition) -> list[tuple[int, int]]:
        others = visible
        for word in words[1:]:
            others &= word.anywhere()
        found: list[tuple[int, int]] = []
        better: SqlCondition | None = None
        after = self._search.after
        for rank, condition in words[0].conditions_by_rank().items():
            wanted = condition if better is None else condition & ~better
            better = condition if better is None else better | condition
            if (after is not None and rank < after.rank) or len(found) >= self._search.limit:
                continue
            if after is not None and rank == after.rank:
                wanted &= self._after(after)
            wanted &= others
            candidates = words[0].candidates_by_rank()[rank]
            source, given = _source(candidates if words[0].is_rare(candidates) else None)
            sql = (
                f"SELECT o.id FROM (SELECT o.id, o.name, o.part, o.ns, k.name AS kind FROM {source}"  # noqa: S608
                f" JOIN part k ON k.id = o.part) o WHERE {wanted.sql} ORDER BY o.name, o.kind, o.ns LIMIT ?"
            )
            arguments = (*given, *wanted.arguments, self._search.limit - len(found))
            found += [(number, int(rank)) for (number,) in rows(self._db, sql, arguments)]
        return found

    def _after(self, after: SearchPosition) -> SqlCondition:
        """The condition of objects of the same rank that come after the position."""
        if self._cluster == after.cluster:
            return SqlCondition("(o.name, o.kind, o.ns) > (?, ?, ?)", (after.name, after.kind, after.namespace))
        return SqlCondition(f"o.name {'>=' if self._cluster > after.cluster else '>'} ?", (after.name,))

    def _hit(self, number: int, rank: int) -> Hit:
        row = one(self._db, "SELECT part, ns, name, uid, created, body FROM obj WHERE id = ?", (number,))
        if row is None:
            raise apsw.CorruptError("the row of a search hit does not exist")
        part, namespace, name, uid, created, body = row
        position = SearchPosition(rank, name, self._cluster, self._names[part], namespace)
        return Hit(position, self._kinds[part], uid, created, body)


def _source(candidates: SqlCondition | None) -> tuple[str, Values]:
    """The FROM clause: the candidates, or all objects in the order of their names."""
    if candidates is None:
        return "obj o INDEXED BY obj_any", ()
    # Duplicates are removed first, because the same object may be found by its name and by its labels.
    unique = f"(SELECT DISTINCT id FROM ({candidates.sql}))"  # noqa: S608 - from here
    return f"{unique} c CROSS JOIN obj o ON o.id = c.id", candidates.arguments
