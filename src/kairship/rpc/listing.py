"""Sorts lists, cuts them into pages, and says how many items there are in all.

The order is total: items with equal keys are ordered by namespace and name, so that no item is on two pages or on none.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kairship.gen.kairship.types.v1alpha1.list_pb import Pagination, SortBy, SortDir

T = TypeVar("T")

DEFAULT_PAGE_SIZE = 10
ALL = -1

Key = Callable[[T], Any]


class Paged(Protocol):
    """A request for a list; every such request has these fields."""

    @property
    def page(self) -> int: ...
    @property
    def page_size(self) -> int: ...


class Sorted(Paged, Protocol):
    """A request for a list whose order the caller can choose."""

    @property
    def sort_by(self) -> SortBy: ...
    @property
    def sort_dir(self) -> SortDir: ...


class Window(msgspec.Struct, frozen=True):
    """The page of a sorted list that a request asks for."""

    page: int
    size: int
    """`ALL` for everything."""

    @classmethod
    def of(cls, request: Paged) -> "Window":
        if request.page_size == ALL:
            return cls(1, ALL)
        return cls(max(1, request.page), request.page_size or DEFAULT_PAGE_SIZE)

    @property
    def end(self) -> int | None:
        """How many items of the list are needed to fill the page; None if all are."""
        return None if self.size == ALL else self.page * self.size

    def cut(self, items: Sequence[T]) -> Sequence[T]:
        """Returns the page, given at least the first `end` items."""
        return items if self.size == ALL else items[(self.page - 1) * self.size : self.end]

    def pagination(self, total: int) -> Pagination:
        pages = math.ceil(total / self.size) if self.size != ALL else min(total, 1)
        return Pagination(total=total, page=self.page, page_size=self.size, pages=pages)


class Order(msgspec.Struct, Generic[T], frozen=True):
    """The keys by which a list can be sorted. `name` decides between equal keys and stands in for a missing key."""

    name: Key[T]
    created: Key[T]
    keys: Mapping[SortBy, Key[T]] = {}

    def sort(self, items: Iterable[T], request: Sorted) -> list[T]:
        return sorted(items, key=self.key(request), reverse=is_descending(request))

    def key(self, request: Sorted) -> Key[T]:
        sort_by = request.sort_by
        by_age = sort_by in (SortBy.UNSPECIFIED, SortBy.created_at)
        chosen = self.created if by_age else self.keys.get(sort_by, self.name)
        return lambda item: (chosen(item), self.name(item))


def is_descending(request: Sorted) -> bool:
    return request.sort_dir is not SortDir.asc


def page_of(items: Iterable[T], order: Order[T], request: Sorted) -> tuple[Sequence[T], Pagination]:
    """Returns the page of `items` that the request asks for."""
    window = Window.of(request)
    ordered = order.sort(items, request)
    return window.cut(ordered), window.pagination(len(ordered))
