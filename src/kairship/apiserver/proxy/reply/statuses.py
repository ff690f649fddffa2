"""Errors as Kubernetes tells them: `metav1.Status`, which kubectl and client-go understand."""

import msgspec

from kairship.rpc.errors import ApiError, Code

_REASONS = {
    Code.INVALID_ARGUMENT: "BadRequest",
    Code.DEADLINE_EXCEEDED: "Timeout",
    Code.NOT_FOUND: "NotFound",
    Code.ALREADY_EXISTS: "AlreadyExists",
    Code.PERMISSION_DENIED: "Forbidden",
    Code.RESOURCE_EXHAUSTED: "TooManyRequests",
    Code.FAILED_PRECONDITION: "BadRequest",
    Code.ABORTED: "Conflict",
    Code.UNIMPLEMENTED: "MethodNotAllowed",
    Code.INTERNAL: "InternalError",
    Code.UNAVAILABLE: "ServiceUnavailable",
    Code.UNAUTHENTICATED: "Unauthorized",
}


def status_of(error: ApiError) -> bytes:
    reason = "RequestEntityTooLarge" if error.http_status == 413 else _REASONS.get(error.code, "")
    retry_after = retry_seconds(error)
    return msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": error.message,
            "reason": reason,
            **({"details": {"retryAfterSeconds": retry_after}} if retry_after is not None else {}),
            "code": error.http_status,
        }
    )


def retry_seconds(error: ApiError) -> int | None:
    """Whole seconds, at least one: `Retry-After` has no fractions."""
    return None if error.retry_after is None else max(1, round(error.retry_after))
