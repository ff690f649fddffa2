"""The access log of the proxy: a log line and the metrics of each request that has ended.

They are written a moment later, for many requests at once. Right after each reply they would take as long as the lookup
in the index itself, because nothing of them is in the caches of the processor by then.
"""

import asyncio
import datetime as dt
from typing import NamedTuple

import structlog

from kairship.apiserver.proxy.metrics import ProxyMetrics
from kairship.apiserver.proxy.request.request_line import RequestLine

_FLUSH_AFTER = 0.05

log = structlog.get_logger("kairship.proxy")


class AccessLogEntry(NamedTuple):
    ended_at: float
    """Seconds since the epoch."""
    seconds: float
    line: RequestLine
    request_id: str
    caller: str | None
    """None if the request was not admitted."""
    origin: str
    method: str
    source: str
    status: int


class AccessLog:
    def __init__(self, metrics: ProxyMetrics) -> None:
        self._metrics = metrics
        self._log = log.bind()
        self._entries: list[AccessLogEntry] = []

    def add(self, entry: AccessLogEntry) -> None:
        self._entries.append(entry)
        if len(self._entries) == 1:
            asyncio.get_running_loop().call_later(_FLUSH_AFTER, self.flush)

    def flush(self) -> None:
        entries, self._entries = self._entries, []
        for entry in entries:
            verb = entry.line.verb if entry.caller is not None else "other"
            self._metrics.observe(verb, entry.source, entry.status, entry.seconds)
            self._log.info(
                "request",
                request_id=entry.request_id,
                caller=entry.caller,
                origin=entry.origin,
                instance=entry.line.target.instance,
                cluster=entry.line.target.cluster,
                method=entry.method,
                path=entry.line.target.path,
                source=entry.source,
                status=entry.status,
                seconds=round(entry.seconds, 6),
                timestamp=dt.datetime.fromtimestamp(entry.ended_at, dt.UTC),
            )
