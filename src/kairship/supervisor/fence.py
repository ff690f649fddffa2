"""Fencing by lease terms: a caller that has lost its lease cannot undo what its successor did.

The highest term of each scope is written to disk before the call that carries it is executed, so fencing works across
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
        """Record the term of the call, or raise `StaleTerm` if a higher term has been seen."""
        highest = self._highest.get(term.scope)
        if highest is not None and term.number < highest:
            raise StaleTerm(f"term {term.number} of {term.scope} is over: term {highest} has called since")
        if term.number != highest:
            raised = self._highest | {term.scope: term.number}
            atomic.replace(self._path, msgspec.json.encode(raised))
            self._highest = raised
