"""Statements with rows that can be anything, as the columns of SQLite are."""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw


def rows(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return db.execute(sql, tuple(arguments)).fetchall()


def each(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """As they are read: the statement goes on while they are gone through."""
    return iter(db.execute(sql, tuple(arguments)))


def one(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    return db.execute(sql, tuple(arguments)).fetchone()
