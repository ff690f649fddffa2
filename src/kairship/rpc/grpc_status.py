"""Errors as gRPC carries them: a code and a message, with `google.rpc.Status` and its details as a trailer."""

from collections.abc import Iterator
from typing import Any

import grpc
from protobuf import Message

from kairship.gen.google.rpc.error_details_pb import BadRequest, ErrorInfo, RequestInfo, RetryInfo
from kairship.gen.google.rpc.status_pb import Status
from kairship.rpc.errors import ApiError, Code

DETAILS = "grpc-status-details-bin"

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_KNOWN: tuple[type[Message[Any]], ...] = (BadRequest, ErrorInfo, RequestInfo)


def code_of(error: ApiError) -> grpc.StatusCode:
    return _CODES[error.code]


def trailer_of(error: ApiError) -> tuple[str, bytes]:
    return DETAILS, error.status().to_binary()


def api_error_of(failure: grpc.aio.AioRpcError) -> ApiError | None:
    """The error with which a server of ours ended a call; None if the failure does not come from one."""
    for key, value in failure.trailing_metadata() or ():
        if key == DETAILS and isinstance(value, bytes):
            try:
                status = Status.from_binary(value)
                return ApiError(
                    Code(status.code), status.message, details=_details(status), retry_after=_retry_after(status)
                )
            except (ValueError, TypeError, EOFError, RecursionError):
                return None
    return None


def _details(status: Status) -> Iterator[Message[Any]]:
    for packed in status.details:
        for kind in _KNOWN:
            detail = packed.unpack(kind)
            if detail is not None:
                yield detail


def _retry_after(status: Status) -> float | None:
    for packed in status.details:
        retry = packed.unpack(RetryInfo)
        if retry is not None and retry.retry_delay is not None:
            return retry.retry_delay.to_seconds()
    return None
