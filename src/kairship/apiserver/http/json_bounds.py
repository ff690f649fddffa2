"""Bounds the depth of JSON and the number of its values before it is parsed, without recursion and in linear time.

Parsing JSON is one call into C that nothing can interrupt, in a thread or not. The number of values bounds how long it
takes; long strings are parsed quickly and do not count. The scan goes piece by piece, so that in a thread it lets the
event loop run in between.
"""

import re
from collections.abc import Iterator
from itertools import accumulate, count
from operator import sub

# A string that is not closed reaches to the end: otherwise each quote would begin another, and the time be quadratic.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_UP_OR_DOWN = bytes.maketrans(b"[{]}", bytes((2, 2, 0, 0)))
_PIECE = 1 << 16
_MARK = b"\xff"  # occurs in no UTF-8


def excess(text: bytes, *, levels: int, values: int) -> str | None:
    """Returns which bound the text exceeds, as the end of a sentence; None if it exceeds none."""
    if text.count(b"{") + text.count(b"[") <= levels and text.count(b",") < values - levels:
        return None
    depth, found, inside = 0, 1, False
    for piece in _pieces(text):
        # A quote and a mark are appended: the mark remains only if the quote has closed a string.
        rest = _STRINGS.sub(b"", (b'"' if inside else b"") + piece + b'"' + _MARK)
        inside = rest.endswith(_MARK)
        steps = rest.translate(_UP_OR_DOWN, _NOT_BRACKETS)
        if depth + max(map(sub, accumulate(steps), count(1)), default=0) > levels:
            return f"is nested deeper than {levels} levels"
        depth += sum(steps) - len(steps)
        # A value stands at the beginning, after a comma, or after an opening bracket.
        found += rest.count(b",") + steps.count(2)
        if found > values:
            return f"has more than {values} values"
    return None


def _pieces(text: bytes) -> Iterator[bytes]:
    """Splits the text, but never between a backslash and what it escapes."""
    start = 0
    while start < len(text):
        piece = text[start : start + _PIECE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = piece[:-1] or piece
        start += len(piece)
        yield piece
