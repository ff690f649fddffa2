"""Pages of a list, counted from 1 as the API has it."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from kairship.gen.kairship.types.v1alpha1.list_pb import Pagination

DEFAULT_SIZE = 10
MOST = 10_000
"""What -1, all of them, means at most: memory must not follow the number of rows."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a list is wanted."""

    number: int = 1
    size: int = 0
    search: str = ""

    @property
    def limit(self) -> int:
        return MOST if self.size == -1 else min(self.size or DEFAULT_SIZE, MOST)

    @property
    def position(self) -> int:
        return max(1, self.number)

    @classmethod
    def of(cls, request: Any) -> "Page":
        return cls(number=request.page, size=request.page_size, search=request.search)


def select_page(
    connection: sa.Connection, query: sa.Select[Any], page: Page, *, names: Sequence[sa.ColumnElement[str]]
) -> tuple[Sequence[sa.Row[Any]], int]:
    """The rows of a page, and how many there are on all pages. The query says the order."""
    if page.search:
        query = query.where(sa.or_(*(name.icontains(page.search, autoescape=True) for name in names)))
    total = connection.execute(sa.select(sa.func.count()).select_from(query.order_by(None).subquery())).scalar_one()
    rows = connection.execute(query.limit(page.limit).offset((page.position - 1) * page.limit)).all()
    return rows, total


def pagination(page: Page, total: int) -> Pagination:
    pages = 1 if page.size == -1 else max(1, math.ceil(total / page.limit))
    return Pagination(total=total, page=page.position, page_size=-1 if page.size == -1 else page.limit, pages=pages)
