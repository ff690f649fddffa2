"""The command line of a user: what they type, and what is printed."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Typed:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    data_dir: Path
    _run: Callable[[tuple[str, ...], str], Typed]

    def __call__(self, *words: str, answers: str = "") -> Typed:
        typed = self._run(words, answers)
        assert "Traceback" not in typed.err
        return typed
