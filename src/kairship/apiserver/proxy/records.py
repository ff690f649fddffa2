"""What is kept of requests that have ended: figures for Prometheus, and a line in the log.

A moment later, of many at once. Right after each reply it takes as long as looking up what was asked for, because
nothing of it is in the caches of the processor by then.
"""

import asyncio
import datetime as dt
from typing import NamedTuple

import structlog

from kairship.apiserver.proxy.figures import Figures
from kairship.apiserver.proxy.request_line import RequestLine

_MOMENT = 0.05

log = structlog.get_logger("kairship.proxy")


class Ended(NamedTuple):
    at: float
    """By the time of day."""
    seconds: float
    line: RequestLine
    request_id: str
    caller: str | None
    """None if nobody was let in."""
    origin: str
    method: str
    source: str
    status: int


class Records:
    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._log = log.bind()
        self._ended: list[Ended] = []

    def add(self, ended: Ended) -> None:
        self._ended.append(ended)
        if len(self._ended) == 1:
            asyncio.get_running_loop().call_later(_MOMENT, self.write)

    def write(self) -> None:
        """All that there is by now."""
        ended, self._ended = self._ended, []
        for each in ended:
            verb = each.line.verb if each.caller is not None else "other"
            self._figures.count(verb, each.source, each.status, each.seconds)
            self._log.info(
                "request",
                request_id=each.request_id,
                caller=each.caller,
                origin=each.origin,
                instance=each.line.target.instance,
                cluster=each.line.target.cluster,
                method=each.method,
                path=each.line.target.path,
                source=each.source,
                status=each.status,
                seconds=round(each.seconds, 6),
                timestamp=dt.datetime.fromtimestamp(each.at, dt.UTC),
            )
