"""Logs as one JSON object per line on stderr."""

import logging
import sys

import msgspec
import structlog


def log_as_json() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _render,
        ],
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


def _render(_logger: object, _name: str, event: structlog.typing.EventDict) -> bytes:
    return msgspec.json.encode(event)
