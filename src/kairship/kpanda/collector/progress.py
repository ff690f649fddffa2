"""How far the collector has come with a cluster: a stage and a few numbers. Pure functions."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from kairship.kpanda.collector.kind_follower import KindFollower

# A watch that breaks off is resumed within seconds. Interruptions shorter than this are not reported.
_REPORTED_AFTER = 15.0
_MOST_NAMED = 5


class Stage(StrEnum):
    CURRENT = "current"
    LISTING = "listing"
    BEHIND = "behind"
    """Some kinds are not being followed."""
    INTERRUPTED = "interrupted"
    """No kind is being followed."""
    LIMITED = "limited"
    """Some kinds have left the index, because the cluster has more than the index keeps of one."""
    STORE_FAILED = "store failed"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    stage: Stage
    kinds: int = 0
    behind: int = 0
    """How many kinds are not being followed."""
    lag: float = 0.0
    """The lag of the worst kind, in seconds."""
    message: str = ""


def progress_of(followers: Sequence[KindFollower], problem: str | None, *, now: float) -> Progress:
    """`problem` says why the cluster as a whole cannot be collected."""
    if problem is not None:
        return Progress(stage=Stage.STORE_FAILED, message=problem)
    if not followers:
        return Progress(stage=Stage.LISTING, message="its kinds are not known yet")
    over_quota = [each for each in followers if each.is_over_quota]
    lost = [each for each in followers if each.problem is not None and not each.is_over_quota]
    kinds, behind = len(followers), len(lost) + len(over_quota)
    lag = max((each.counters.current_lag(now) for each in followers if not each.is_over_quota), default=0.0)
    unlisted = [each for each in lost if not each.counters.listed_at]
    late = [each for each in lost if each.counters.lost_for(now) > _REPORTED_AFTER]
    if over_quota and not late:
        return Progress(stage=Stage.LIMITED, kinds=kinds, behind=behind, lag=lag, message=_message(over_quota))
    if not late:
        stage = Stage.LISTING if unlisted else Stage.CURRENT
        message = f"{len(unlisted)} of {kinds} kinds are being listed" if unlisted else ""
        return Progress(stage=stage, kinds=kinds, behind=behind, lag=lag, message=message)
    stage = Stage.INTERRUPTED if len(late) == kinds else Stage.BEHIND
    return Progress(stage=stage, kinds=kinds, behind=behind, lag=lag, message=_message(late))


def _message(late: Sequence[KindFollower]) -> str:
    names = sorted(each.resource.plural for each in late)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"not followed: {', '.join(names[:_MOST_NAMED])}{more}; {late[0].problem}"
