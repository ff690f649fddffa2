"""Durations as kubectl prints them: how long ago something was, in two units at most."""

import time
from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def since(timestamp: str | None) -> str:
    """How long ago a timestamp was; `<unknown>` without a timestamp."""
    return "<unknown>" if not timestamp else human(time.time() - seconds(timestamp))


def seconds(timestamp: str) -> float:
    """Raises `ValueError`."""
    found = datetime.fromisoformat(timestamp)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def human(duration: float) -> str:
    if duration <= -2:
        return "<invalid>"  # in the future by more than clocks may differ
    whole = max(0, int(duration))
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(whole: int, unit: int, name: str, smaller: int, smaller_name: str) -> str:
    rest = whole % unit // smaller
    return f"{whole // unit}{name}{rest}{smaller_name}" if rest else f"{whole // unit}{name}"
