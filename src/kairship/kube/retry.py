"""Read-modify-write against other writers, as `RetryOnConflict` of client-go."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kairship.kube.errors import Conflict

T = TypeVar("T")


async def retry_on_conflict(
    attempt: Callable[[], Awaitable[T]],
    *,
    attempts: int,
    between: Callable[[], Awaitable[None]] | None = None,
    exhausted: Exception | None = None,
) -> T:
    """Returns what `attempt` returns; calls it again when it raises `Conflict`, `attempts` times in all.

    `attempt` must read the object anew each time. `between` is awaited before each further attempt, for example for a
    pause. When the last attempt ends in a conflict too, `exhausted` is raised, or that `Conflict` if there is none.
    """
    for _ in range(attempts - 1):
        try:
            return await attempt()
        except Conflict:
            if between is not None:
                await between()
    try:
        return await attempt()
    except Conflict as conflict:
        if exhausted is None:
            raise
        raise exhausted from conflict
