"""The replies of REST: JSON, with a `google.rpc.Status` for errors, and the headers that every reply has."""

from aiohttp import web
from multidict import CIMultiDict

from kairship.apiserver.pipeline.chain import Outcome
from kairship.index import AGE_HEADER
from kairship.rpc.errors import ApiError, Code
from kairship.wire import write

SECURITY_HEADERS = {
    "Server": "kairship",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
"""Security headers of every reply of the API: a browser must not cache it, sniff its type or embed it."""

_HEADERS = CIMultiDict({"Content-Type": "application/json", **SECURITY_HEADERS})


def outcome_response(outcome: Outcome) -> web.Response:
    if outcome.error is not None:
        response = error_response(outcome.error, outcome.request_id)
    else:
        response = _json(outcome.reply, outcome.request_id, status=200)
    for warning in outcome.warnings:
        response.headers.add("Warning", _warning(warning))
    if outcome.data_age is not None:
        response.headers[AGE_HEADER] = f"{outcome.data_age:.1f}"
    return response


def error_response(error: ApiError, request_id: str) -> web.Response:
    response = _json(write(error.status()), request_id, status=error.http_status)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if error.code is Code.UNAUTHENTICATED:
        response.headers["WWW-Authenticate"] = 'Bearer realm="kairship"'
    return response


def _json(body: bytes, request_id: str, *, status: int) -> web.Response:
    headers = _HEADERS.copy()
    headers["X-Request-Id"] = request_id
    return web.Response(body=body, status=status, headers=headers)


def _warning(text: str) -> str:
    """Formats a warning as Kubernetes does (RFC 9111). A header can hold ASCII only."""
    quoted = text.encode("ascii", "backslashreplace").decode().replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
