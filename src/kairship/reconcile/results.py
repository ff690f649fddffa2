"""How a reconcile ends: it returns one of three results, or raises an exception.

    Done                        nothing to do until a source enqueues the key again
    RetryAfter(seconds)         reconcile again then; this is not a failure
    Requeue                     reconcile again with the backoff of the key

    ReconcileError
    ├── TerminalError           a retry would not help: wait until a source enqueues the key again
    └── RetryableError          retry with backoff, in `after` seconds at the earliest

Any other exception counts as retryable. Errors of the client are logged in one line, the others with a traceback.
"""

import msgspec


class Done(msgspec.Struct, frozen=True):
    """There is nothing to do until a source enqueues the key again."""


class RetryAfter(msgspec.Struct, frozen=True):
    """Reconcile the key again in so many seconds."""

    seconds: float


class Requeue(msgspec.Struct, frozen=True):
    """Reconcile the key again with its backoff."""


Result = Done | RetryAfter | Requeue

DONE = Done()
REQUEUE = Requeue()
STALE = RetryAfter(0.2)
"""The cache is behind what made this write conflict; look again in 0.2 s. Also for caches that do not agree yet."""


class ReconcileError(Exception):
    """A failure that the controller expected."""


class TerminalError(ReconcileError):
    """A retry would not help."""


class RetryableError(ReconcileError):
    """A retry may help."""

    def __init__(self, message: str, *, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after
