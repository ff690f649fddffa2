"""Shorthands for running statements. Rows are tuples of any types, because columns of SQLite are untyped."""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw


def prepare_once(db: apsw.Connection) -> None:
    """Makes query plans independent of bound values.

    Without this SQLite prepares some statements anew at every use, which takes most of their time.
    """
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def rows(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return db.execute(sql, tuple(arguments)).fetchall()


def each(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """The rows one by one. The statement stays open while they are iterated over."""
    return iter(db.execute(sql, tuple(arguments)))


def one(db: apsw.Connection, sql: str, arguments: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    return db.execute(sql, tuple(arguments)).fetchone()
