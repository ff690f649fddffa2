"""Depth is what a reader of the whole would find."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kairship.apiserver.json_depth import is_deeper

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


@given(JSON, st.integers(0, 6))
def test_it_is_as_deep_as_a_reader_finds(value: Any, levels: int) -> None:
    assert is_deeper(json.dumps(value).encode(), levels) == (depth(value) > levels)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(b"[" * (4 << 20), id="never closed"),
        pytest.param(b"{}," * (1 << 20), id="pairs"),
        pytest.param(b'"' + b'\\"' * (2 << 20) + b"[" * 200, id="text without end"),
        pytest.param(b'"' * (4 << 20), id="quotes"),
        pytest.param(b"[" * 200 + b"]" * (4 << 20), id="closed too often"),
    ],
)
def test_the_time_is_linear(hostile: bytes) -> None:
    started = time.process_time()
    is_deeper(hostile, 100)
    assert time.process_time() - started < 5
