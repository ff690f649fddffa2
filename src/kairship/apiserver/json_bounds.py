"""How deep JSON is nested and how much there is in it, found out before anything is built from it: without recursion,
in time that is linear.

Reading JSON is one call into C that nothing can interrupt, in a thread or not: how long it takes is bounded here, by
the number of values. Long texts are read quickly and so are not what counts. The looking itself is done piece by piece,
so that the event loop goes on beside it.
"""

import re
from collections.abc import Iterator
from itertools import accumulate, count
from operator import sub

# A text that is not closed reaches to the end: else each quote in it would be a new beginning, and the time square.
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_UP_OR_DOWN = bytes.maketrans(b"[{]}", bytes((2, 2, 0, 0)))
_PIECE = 1 << 16
_MARK = b"\xff"  # is in no UTF-8


def excess(text: bytes, *, levels: int, values: int) -> str | None:
    """What there is too much of, if there is."""
    if text.count(b"{") + text.count(b"[") <= levels and text.count(b",") < values - levels:
        return None
    depth, found, inside = 0, 1, False
    for piece in _pieces(text):
        # A quote and a mark behind the piece: the mark is still there afterwards only if the quote has closed a text.
        rest = _TEXTS.sub(b"", (b'"' if inside else b"") + piece + b'"' + _MARK)
        inside = rest.endswith(_MARK)
        steps = rest.translate(_UP_OR_DOWN, _NOT_BRACKETS)
        if depth + max(map(sub, accumulate(steps), count(1)), default=0) > levels:
            return f"is nested deeper than {levels} levels"
        depth += sum(steps) - len(steps)
        # A value stands at the beginning, behind a comma or behind a bracket that opens.
        found += rest.count(b",") + steps.count(2)
        if found > values:
            return f"has more than {values} values"
    return None


def _pieces(text: bytes) -> Iterator[bytes]:
    """Never cut between a backslash and what it escapes."""
    start = 0
    while start < len(text):
        piece = text[start : start + _PIECE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = piece[:-1] or piece
        start += len(piece)
        yield piece
