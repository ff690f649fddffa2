"""Paging: for every request, each item is on exactly one page, in order."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kairship.gen.kairship.instance.v1alpha1.instance_pb import ListInstancesRequest
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy, SortDir
from kairship.rpc.listing import ALL, Order, page_of

Item = tuple[str, int, str]
ORDER: Order[Item] = Order(
    name=lambda item: item[0], created=lambda item: item[1], keys={SortBy.state: lambda item: item[2]}
)
ITEMS: list[Item] = [("b", 1, "RUNNING"), ("a", 1, "STOPPED"), ("c", 3, "RUNNING"), ("d", 2, "STOPPED")]


def listed(**request: object) -> list[str]:
    items, _ = page_of(ITEMS, ORDER, ListInstancesRequest(**request))  # type: ignore[arg-type]
    return [name for name, _, _ in items]


def test_the_newest_come_first_unless_something_else_is_asked_for() -> None:
    assert listed() == ["c", "d", "b", "a"]
    assert listed(sort_dir=SortDir.asc) == ["a", "b", "d", "c"]
    assert listed(sort_by=SortBy.field_name) == ["d", "c", "b", "a"]
    assert listed(sort_by=SortBy.state, sort_dir=SortDir.asc) == ["b", "c", "a", "d"]
    assert listed(sort_by=SortBy.workspace, sort_dir=SortDir.asc) == ["a", "b", "c", "d"]  # no such column: by name


def test_a_page_has_ten_items_unless_another_size_is_asked_for() -> None:
    many = [(f"{number:03}", number, "") for number in range(25)]
    items, pagination = page_of(many, ORDER, ListInstancesRequest(page=3))
    assert len(items) == 5
    assert (pagination.total, pagination.page, pagination.page_size, pagination.pages) == (25, 3, 10, 3)
    items, pagination = page_of(many, ORDER, ListInstancesRequest(page=7, page_size=ALL))
    assert len(items) == 25
    assert (pagination.page, pagination.page_size, pagination.pages) == (1, ALL, 1)
    _, pagination = page_of([], ORDER, ListInstancesRequest())
    assert (pagination.total, pagination.pages) == (0, 0)


@given(
    items=st.lists(st.tuples(st.text(max_size=3), st.integers(0, 3), st.sampled_from("xyz")), unique_by=lambda i: i[0]),
    size=st.integers(1, 5),
    sort_by=st.sampled_from(list(SortBy)),
    sort_dir=st.sampled_from(list(SortDir)),
)
def test_every_item_is_on_exactly_one_page(items: list[Item], size: int, sort_by: SortBy, sort_dir: SortDir) -> None:
    pages = [
        page_of(items, ORDER, ListInstancesRequest(page=page, page_size=size, sort_by=sort_by, sort_dir=sort_dir))[0]
        for page in range(1, math.ceil(len(items) / size) + 1)
    ]
    assert sorted(item for page in pages for item in page) == sorted(items)
