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
            _render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )


def _render(_logger: object, _name: str, event: structlog.typing.EventDict) -> bytes:
    return msgspec.json.encode(event)
