"""Logs defects of ours: where they happened, but not what the error says, which may be a part of the request."""

import traceback
from typing import Any

_FRAMES = 20


def log_defect(log: Any, error: Exception, operation: str, request_id: str) -> None:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    log.error(
        "defect",
        request_id=request_id,
        operation=operation,
        error=type(error).__qualname__,
        frames=[f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    )
