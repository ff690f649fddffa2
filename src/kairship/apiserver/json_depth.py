"""How deep JSON is nested, found out before anything is built from it: without recursion, in time that is linear."""

import re
from itertools import accumulate, count
from operator import sub

# A text that is not closed reaches to the end: else each quote in it would be a new beginning, and the time square.
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_UP_OR_DOWN = bytes.maketrans(b"[{]}", bytes((2, 2, 0, 0)))
_AT_ONCE = 1 << 16  # other threads get their turn between


def is_deeper(text: bytes, levels: int) -> bool:
    """Whether there are more than so many levels."""
    if text.count(b"{") + text.count(b"[") <= levels:
        return False
    steps = _TEXTS.sub(b"", text).translate(_UP_OR_DOWN, _NOT_BRACKETS)
    depth = 0
    for start in range(0, len(steps), _AT_ONCE):
        part = steps[start : start + _AT_ONCE]
        if depth + max(map(sub, accumulate(part), count(1))) > levels:
            return True
        depth += sum(part) - len(part)
    return False
