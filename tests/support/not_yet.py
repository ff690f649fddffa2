"""A false answer for `eventually` that says what is missing."""

from typing import Literal


class NotYet:
    """Is false. The failure of the wait shows its text."""

    def __init__(self, missing: object) -> None:
        self._missing = missing

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return str(self._missing)
