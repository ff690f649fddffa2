"""Statements with rows that can be anything, as the columns of SQLite are."""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw


def prepare_once(db: apsw.Connection) -> None:
    """Plans do not depend on what is bound: else SQLite prepares some statements anew at every use, for most of their
    time."""
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def rows(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return db.execute(sql, tuple(arguments)).fetchall()


def each(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """As they are read: the statement goes on while they are gone through."""
    return iter(db.execute(sql, tuple(arguments)))


def one(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    return db.execute(sql, tuple(arguments)).fetchone()
