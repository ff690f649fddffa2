"""Pages of a list, counted from 1 as in the API."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from kairship.gen.kairship.types.v1alpha1.list_pb import Pagination

DEFAULT_SIZE = 10
MAX_SIZE = 10_000
"""The largest page, also for size -1 (all rows): memory must not grow with the number of rows."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a list that a request asks for."""

    number: int = 1
    size: int = 0
    search: str = ""

    @property
    def limit(self) -> int:
        return MAX_SIZE if self.size == -1 else min(self.size or DEFAULT_SIZE, MAX_SIZE)

    @property
    def position(self) -> int:
        return max(1, self.number)

    @classmethod
    def of(cls, request: Any) -> "Page":
        return cls(number=request.page, size=request.page_size, search=request.search)


def select_page(
    connection: sa.Connection, query: sa.Select[Any], page: Page, *, names: Sequence[sa.ColumnElement[str]]
) -> tuple[Sequence[sa.Row[Any]], int]:
    """The rows of a page, and their number on all pages. The query defines the order."""
    if page.search:
        query = query.where(sa.or_(*(name.icontains(page.search, autoescape=True) for name in names)))
    total = connection.execute(sa.select(sa.func.count()).select_from(query.order_by(None).subquery())).scalar_one()
    rows = connection.execute(query.limit(page.limit).offset((page.position - 1) * page.limit)).all()
    return rows, total


def pagination(page: Page, total: int) -> Pagination:
    pages = 1 if page.size == -1 else max(1, math.ceil(total / page.limit))
    return Pagination(total=total, page=page.position, page_size=-1 if page.size == -1 else page.limit, pages=pages)
