"""Lists as callers want them: sorted, cut into pages, and told how much there is in all.

Sorting is stable and total: what the key leaves open is decided by namespace and name, so that no item is on two pages
or on none.
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
    """A request for a list. All of them have these fields."""

    @property
    def page(self) -> int: ...
    @property
    def page_size(self) -> int: ...


class Sorted(Paged, Protocol):
    """One whose order can be chosen."""

    @property
    def sort_by(self) -> SortBy: ...
    @property
    def sort_dir(self) -> SortDir: ...


class Window(msgspec.Struct, frozen=True):
    """Which items of a sorted list are asked for."""

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
        """How many items of the list are needed to fill the page; None for all."""
        return None if self.size == ALL else self.page * self.size

    def cut(self, items: Sequence[T]) -> Sequence[T]:
        """The page, out of at least the first `end` items."""
        return items if self.size == ALL else items[(self.page - 1) * self.size : self.end]

    def pagination(self, total: int) -> Pagination:
        pages = math.ceil(total / self.size) if self.size != ALL else min(total, 1)
        return Pagination(total=total, page=self.page, page_size=self.size, pages=pages)


class Order(msgspec.Struct, Generic[T], frozen=True):
    """What a kind of list can be sorted by. `name` decides wherever a key does not, and where there is no such key."""

    name: Key[T]
    created: Key[T]
    keys: Mapping[SortBy, Key[T]] = {}

    def sort(self, items: Iterable[T], request: Sorted) -> list[T]:
        return sorted(items, key=self.key(request), reverse=is_descending(request))

    def key(self, request: Sorted) -> Key[T]:
        wanted = request.sort_by
        by_age = wanted in (SortBy.UNSPECIFIED, SortBy.created_at)
        chosen = self.created if by_age else self.keys.get(wanted, self.name)
        return lambda item: (chosen(item), self.name(item))


def is_descending(request: Sorted) -> bool:
    return request.sort_dir is not SortDir.asc


def page_of(items: Iterable[T], order: Order[T], request: Sorted) -> tuple[Sequence[T], Pagination]:
    """The page of `items` that is asked for."""
    window = Window.of(request)
    found = order.sort(items, request)
    return window.cut(found), window.pagination(len(found))
