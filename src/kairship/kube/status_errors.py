"""Turns the refusal of a server, a `Status` or plain text, into the typed error."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from kairship.kube import errors

_BY_REASON: dict[str, type[errors.ApiError]] = {
    "AlreadyExists": errors.AlreadyExists,
    "Expired": errors.Expired,
    "Gone": errors.Expired,
    "ServerTimeout": errors.ServerTimeout,
    "Timeout": errors.ServerTimeout,
}
_BY_CODE: dict[int, type[errors.ApiError]] = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    409: errors.Conflict,
    410: errors.Expired,
    413: errors.TooLarge,
    415: errors.UnsupportedMediaType,
    422: errors.Invalid,
    429: errors.TooManyRequests,
    500: errors.InternalError,
    503: errors.Unavailable,
    504: errors.ServerTimeout,
}
_EXCERPT = 500
_LONGEST_MESSAGE = 16 << 10
_MOST_CAUSES = 100
"""Bounds of what an error keeps of a refusal: it may end in a condition, a log and a reply."""
# Refusals of servers that have just started. Nothing is wrong with the request: it is accepted a moment later.
_STARTING_UP = (
    # The server evaluates an admission policy before it knows the policy's paramKind, or has synced its objects.
    "failed to configure policy:",
    "failed to configure binding:",
    # An aggregated server does not know yet which front proxy to trust. A request that is really anonymous gets a 401.
    'User "system:anonymous" cannot',
)


class _Details(msgspec.Struct, rename="camel"):
    causes: list[errors.Cause] | None = None
    retry_after_seconds: float = 0


class _Status(msgspec.Struct):
    kind: str
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_decoder = msgspec.json.Decoder(_Status)


def api_error(
    *, status: int | None, body: bytes | msgspec.Raw, headers: Mapping[str, str], call: str, server: str
) -> errors.ApiError:
    """Returns the error for a reply of 400 and above, or for the ERROR event of a watch, which has no `status`."""
    try:
        answer = _decoder.decode(body)
    except msgspec.DecodeError:
        answer = None
    if answer is None or answer.kind != "Status":
        # Health checks, load balancers and unknown paths answer in plain text.
        answer = _Status(kind="Status", message=bytes(body)[:_EXCERPT].decode("utf-8", "replace").strip())
    code = status or answer.code or 500
    if code in (403, 422) and any(text in answer.message for text in _STARTING_UP):
        code, answer.reason = 503, "ServiceUnavailable"
    details = answer.details or _Details()
    retry_after = _seconds(headers.get("Retry-After"))
    return _type_of(code, answer.reason)(
        status=code,
        reason=answer.reason[:_EXCERPT],
        message=answer.message[:_LONGEST_MESSAGE],
        causes=(details.causes or ())[:_MOST_CAUSES],
        retry_after=retry_after if retry_after is not None else details.retry_after_seconds or None,
        call=call,
        server=server,
    )


def _type_of(code: int, reason: str) -> type[errors.ApiError]:
    fallback = errors.ServerError if code >= 500 else errors.ApiError
    return _BY_REASON.get(reason) or _BY_CODE.get(code, fallback)


def _seconds(retry_after: str | None) -> float | None:
    """Returns the pause of a Retry-After header in seconds; the header has seconds or a date."""
    if retry_after is None:
        return None
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
