"""CPU and memory of processes, each together with the descendants in its session.

All functions read /proc and block: call them in a thread.
"""

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress

import psutil


def cpu_seconds(sessions: Collection[int]) -> dict[int, float]:
    """CPU time by session (the pid of its leader), including that of ended descendants that were waited for."""
    return _sum(sessions, lambda member: sum(member.cpu_times()[:4]))  # user and system, own and of ended children


def memory_bytes(sessions: Collection[int]) -> dict[int, int]:
    """Memory by session: the proportional set size, or the resident set size where the kernel does not report it."""
    return {session: int(total) for session, total in _sum(sessions, _memory).items()}


class CpuMeter:
    """The share of one core that each session used between the last two samples, in percent."""

    def __init__(self) -> None:
        self.percent: dict[int, float] = {}
        self._seconds: dict[int, float] = {}
        self._at = time.monotonic()

    def sample(self, sessions: Collection[int]) -> None:
        now, seconds = time.monotonic(), cpu_seconds(sessions)
        self.percent = {
            session: max(0.0, 100 * (total - self._seconds[session]) / (now - self._at))
            for session, total in seconds.items()
            if session in self._seconds
        }
        self._seconds, self._at = seconds, now


def _sum(sessions: Collection[int], measure: Callable[[psutil.Process], float]) -> dict[int, float]:
    totals = dict.fromkeys(sessions, 0.0)
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.Error):  # it has ended, or belongs to another user
            session = os.getsid(pid)
            if session in totals:
                totals[session] += measure(psutil.Process(pid))
    return totals


def _memory(member: psutil.Process) -> int:
    try:
        return int(member.memory_full_info().pss)
    except (psutil.AccessDenied, AttributeError):
        return int(member.memory_info().rss)
