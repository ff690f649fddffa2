"""Logs on stderr, as one JSON object per line."""

import datetime as dt
import logging
import sys
from collections.abc import Mapping
from typing import Any

import msgspec
import structlog


def log_as_json() -> None:
    structlog.configure(
        processors=[],
        wrapper_class=Logger,
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Handler()], force=True)


class Logger(structlog.BoundLoggerBase):
    """Writes each call as a line in one step. Every request logs a line, and structlog's chain of processors would
    take longer than the rest of the call."""

    def debug(self, event: str, **fields: Any) -> None:
        """Writes nothing: debug events are dropped."""

    def info(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """Logs the exception that is being handled; call it in an `except` block."""
        self._write("error", event, structlog.processors.format_exc_info(None, "error", {**fields, "exc_info": True}))

    def _write(self, level: str, event: str, fields: Mapping[str, Any]) -> None:
        line = {**self._context, "level": level, "timestamp": dt.datetime.now(dt.UTC), **fields, "event": event}
        self._logger.msg(msgspec.json.encode(line))


class _Handler(logging.Handler):
    """Writes the log records of libraries in the same form, with the type of an exception but not its text, which may
    quote a request."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        structlog.get_logger(record.name).warning(
            str(record.msg), logger=record.name, level=record.levelname.lower(), error=kind.__name__ if kind else None
        )
