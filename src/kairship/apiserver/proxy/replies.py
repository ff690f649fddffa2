"""Replies of the proxy: where they come from is written on them, and errors are in the words of Kubernetes."""

from aiohttp import web
from multidict import CIMultiDict

from kairship.apiserver.proxy import headers, statuses
from kairship.kube import Refused
from kairship.rpc.errors import ApiError, Unavailable

SOURCE = "X-Kairship-Source"
INSTANCE = "instance"


def mark(response: web.StreamResponse, request_id: str) -> None:
    response.headers[SOURCE] = INSTANCE
    response.headers["X-Request-Id"] = request_id
    response.headers["X-Content-Type-Options"] = "nosniff"


def refusal(error: ApiError, request_id: str, *, status: int | None = None) -> web.Response:
    response = web.Response(
        body=statuses.status_of(error), status=status or error.http_status, content_type="application/json"
    )
    response.headers["X-Request-Id"] = request_id
    response.headers["Cache-Control"] = "no-cache, private"
    pause = statuses.retry_seconds(error)
    if pause is not None:
        response.headers["Retry-After"] = str(pause)
    return response


def refused_upgrade(answer: Refused, request_id: str) -> web.Response:
    if 300 <= answer.status < 400 or answer.status < 200:
        raise Unavailable("the cluster behind this did not agree, and led elsewhere; that is not followed")
    back = headers.coming_back(CIMultiDict(answer.headers))
    back.popall("Content-Length", None)
    response = web.Response(body=answer.body, status=answer.status, headers=back)
    mark(response, request_id)
    return response


def switching(back: CIMultiDict[str]) -> bytes:
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in back.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise Unavailable("the cluster behind this did not answer properly")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
