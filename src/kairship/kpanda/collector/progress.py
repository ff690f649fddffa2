"""How far the collector has come with a cluster, in one word and a few numbers. Pure functions."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from kairship.kpanda.collector.kind import KindFollower

# A watch that is broken off is taken up again within seconds: nobody needs to hear of it.
_BRIEF = 15.0
_NAMED = 5


class Stage(StrEnum):
    CURRENT = "current"
    LISTING = "listing"
    BEHIND = "behind"
    """Some kinds are not followed."""
    INTERRUPTED = "interrupted"
    """No kind is."""
    STORE_FAILED = "store failed"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    stage: Stage
    kinds: int = 0
    behind: int = 0
    """How many of them are not being followed."""
    lag: float = 0.0
    """Seconds, of the worst kind."""
    message: str = ""


def progress_of(followers: Sequence[KindFollower], problem: str | None, *, now: float) -> Progress:
    """`problem` is what keeps the cluster as a whole from being collected."""
    if problem is not None:
        return Progress(stage=Stage.STORE_FAILED, message=problem)
    if not followers:
        return Progress(stage=Stage.LISTING, message="its kinds are not known yet")
    lost = [each for each in followers if each.problem is not None]
    kinds, behind = len(followers), len(lost)
    lag = max(each.figures.behind(now) for each in followers)
    unlisted = [each for each in lost if not each.figures.listed_at]
    late = [each for each in lost if each.figures.lost_for(now) > _BRIEF]
    if not late:
        stage = Stage.LISTING if unlisted else Stage.CURRENT
        message = f"{len(unlisted)} of {kinds} kinds are being listed" if unlisted else ""
        return Progress(stage=stage, kinds=kinds, behind=behind, lag=lag, message=message)
    stage = Stage.INTERRUPTED if len(late) == kinds else Stage.BEHIND
    return Progress(stage=stage, kinds=kinds, behind=behind, lag=lag, message=_told(late))


def _told(late: Sequence[KindFollower]) -> str:
    names = sorted(each.resource.plural for each in late)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"not followed: {', '.join(names[:_NAMED])}{more}; {late[0].problem}"
