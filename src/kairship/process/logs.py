"""Logs as one JSON object per line on stderr."""

import datetime as dt
import logging
import sys

import msgspec
import structlog

_LEVELS = {"exception": "error", "warn": "warning"}


def log_as_json() -> None:
    structlog.configure(
        processors=[_render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Handler()], force=True)


class _Handler(logging.Handler):
    """What libraries have to say, in the same form. Of an exception only its type: its text may quote a request."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        structlog.get_logger(record.name).warning(
            str(record.msg), logger=record.name, level=record.levelname.lower(), error=kind.__name__ if kind else None
        )


def _render(logger: object, level: str, event: structlog.typing.EventDict) -> bytes:
    """All in one step: every request has a line, and a step of structlog takes as long as the line itself."""
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(logger, level, event)
    event.setdefault("level", _LEVELS.get(level, level))
    event["timestamp"] = dt.datetime.now(dt.UTC)
    return msgspec.json.encode(event)
