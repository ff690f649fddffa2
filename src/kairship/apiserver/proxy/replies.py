"""Replies of the proxy: where they come from is written on them, and errors are in the words of Kubernetes."""

from collections.abc import MutableMapping

from aiohttp import HttpVersion11, web
from multidict import CIMultiDict

from kairship import index
from kairship.apiserver.proxy import headers, statuses
from kairship.apiserver.proxy.indexed import Answer
from kairship.apiserver.proxy.whole_reply import WholeReply
from kairship.index import statuses as statuses_of_lists
from kairship.kube import Refused
from kairship.rpc.errors import ApiError, Unavailable

SOURCE = "X-Kairship-Source"
INSTANCE = "instance"
INDEX = "index"
_WITHOUT_BODY = frozenset({204, 304})
NOT_NOTED = f'299 kairship "{index.NOT_NOTED}"'


def mark(headers: MutableMapping[str, str], request_id: str, source: str = INSTANCE) -> None:
    headers[SOURCE] = source
    headers["X-Request-Id"] = request_id
    headers["X-Content-Type-Options"] = "nosniff"


def of_index(answer: Answer, request_id: str) -> web.StreamResponse:
    return web.StreamResponse(status=answer.status, headers=_from_there(answer, request_id))


def whole_of_index(request: web.BaseRequest, answer: Answer, body: bytes, request_id: str) -> web.StreamResponse:
    return whole(request, answer.status, _from_there(answer, request_id), body)


def whole(request: web.BaseRequest, status: int, headers: CIMultiDict[str], body: bytes) -> web.StreamResponse:
    """To anything but HEAD."""
    if request.version != HttpVersion11 or status in _WITHOUT_BODY:
        return web.Response(status=status, headers=headers, body=body)
    return WholeReply(status, headers, body)


def _from_there(answer: Answer, request_id: str) -> CIMultiDict[str]:
    back = CIMultiDict(answer.headers)
    back["Cache-Control"] = "no-cache, private"
    mark(back, request_id, INDEX if answer.from_index else INSTANCE)
    return back


def expired(request_id: str) -> web.StreamResponse:
    """To a page of the index that has to come from the instance, which does not know where the last one ended."""
    body = statuses_of_lists.expired("the list cannot be continued from where it was begun: begin again")
    response = web.Response(status=410, body=body, content_type="application/json")
    mark(response.headers, request_id, INDEX)
    return response


def source_of(response: web.StreamResponse | None) -> str:
    return INSTANCE if response is None else response.headers.get(SOURCE, INSTANCE)


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
    mark(response.headers, request_id)
    return response


def switching(back: CIMultiDict[str]) -> bytes:
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in back.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise Unavailable("the cluster behind this did not answer properly")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
