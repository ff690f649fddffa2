"""Depth and number of values are what a parser of the whole text would find."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kairship.apiserver.http import json_bounds
from kairship.apiserver.http.json_bounds import excess

KEYS = st.text(alphabet='[{"\\', max_size=3)
JSON = st.recursive(
    st.none() | st.text(alphabet='[]{}"\\ab', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=30,
)


def depth(value: Any) -> int:
    match value:
        case dict():
            return 1 + max(map(depth, value.values()), default=0)
        case list():
            return 1 + max(map(depth, value), default=0)
        case _:
            return 0


def values(value: Any) -> int:
    """Counts an empty array or object as one value too many, as the scan does: it does not look between brackets."""
    match value:
        case dict():
            return 1 + max(1, sum(map(values, value.values())))
        case list():
            return 1 + max(1, sum(map(values, value)))
        case _:
            return 1


@pytest.fixture(scope="module", params=[2, 7, 1 << 16])
def pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_bounds, "_PIECE", request.param)
        yield


@pytest.mark.usefixtures("pieces")
@given(JSON, st.integers(0, 6))
def test_the_depth_is_what_a_parser_finds(value: Any, levels: int) -> None:
    found = excess(json.dumps(value).encode(), levels=levels, values=1000)
    assert found == (f"is nested deeper than {levels} levels" if depth(value) > levels else None)


@pytest.mark.usefixtures("pieces")
@given(JSON, st.integers(101, 110))
def test_the_number_of_values_is_what_a_parser_finds(value: Any, most: int) -> None:
    many = [value, *range(100)]
    found = excess(json.dumps(many).encode(), levels=100, values=most)
    assert found == (f"has more than {most} values" if values(many) > most else None)


SIZE = 16 << 20
HOSTILE = [
    pytest.param(b"[" * SIZE, id="never closed"),
    pytest.param(b"{}," * (SIZE // 3), id="pairs"),
    pytest.param(b"[" + b"1," * (SIZE // 2), id="numbers"),
    pytest.param(b"[" * 101 + b'"a"' * (SIZE // 3), id="short texts"),
    pytest.param(b'"' + b'\\"' * (SIZE // 2) + b"[" * 200, id="text without end"),
    pytest.param(b'"' + b"\\" * SIZE + b"[" * 200, id="backslashes"),
    pytest.param(b'"' * SIZE + b"[" * 200, id="quotes"),
    pytest.param(b"[" * 200 + b"]" * SIZE, id="closed too often"),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_the_time_is_linear(hostile: bytes) -> None:
    started = time.thread_time()
    excess(hostile, levels=100, values=100_000)
    assert time.thread_time() - started < 5
