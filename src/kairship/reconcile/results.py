"""How a reconcile ends: by returning one of three results, or by raising.

    Done                        nothing to do until something changes
    RetryAfter(seconds)         look again then; not a failure
    Requeue                     look again soon, slower each time

    ReconcileError
    ├── TerminalError           trying again would not help: wait until something changes
    └── RetryableError          try again with backoff, in `after` seconds at the earliest

Any other exception counts as retryable: errors of the client as what they are, the rest with a traceback in the log.
"""

import msgspec


class Done(msgspec.Struct, frozen=True):
    """Nothing to do until something changes."""


class RetryAfter(msgspec.Struct, frozen=True):
    """Look again in so many seconds."""

    seconds: float


class Requeue(msgspec.Struct, frozen=True):
    """Look again with the key's own backoff."""


Result = Done | RetryAfter | Requeue

DONE = Done()
REQUEUE = Requeue()


class ReconcileError(Exception):
    """A failure that the controller understands."""


class TerminalError(ReconcileError):
    """Trying again would not help."""


class RetryableError(ReconcileError):
    """Trying again may help."""

    def __init__(self, message: str, *, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after
