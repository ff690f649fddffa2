"""Fencing: a caller that has lost its lease must not undo what its successor did.

The highest term of each scope is on disk before the call that brought it is carried out, so the promise holds across
restarts of the supervisor.
"""

from pathlib import Path

import msgspec

from kairship.supervisor import atomic
from kairship.supervisor.errors import StaleTerm
from kairship.supervisor.spec import Term


class Fence:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._highest = atomic.load(path, dict[str, int], default={})

    def admit(self, term: Term) -> None:
        """Let the call pass and remember its term, or raise StaleTerm."""
        highest = self._highest.get(term.scope)
        if highest is not None and term.number < highest:
            raise StaleTerm(f"term {term.number} of {term.scope} is over: term {highest} has called since")
        if term.number != highest:
            risen = self._highest | {term.scope: term.number}
            atomic.replace(self._path, msgspec.json.encode(risen))
            self._highest = risen
