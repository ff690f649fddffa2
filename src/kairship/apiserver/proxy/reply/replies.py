"""Makes the proxy's replies: each says whether the index or the instance gave it, and errors are Kubernetes' own."""

from collections.abc import MutableMapping

from aiohttp import HttpVersion11, web
from multidict import CIMultiDict, CIMultiDictProxy

from kairship import index
from kairship.apiserver.proxy.index.reads import Answer
from kairship.apiserver.proxy.reply import statuses
from kairship.apiserver.proxy.reply.complete_response import CompleteResponse
from kairship.apiserver.proxy.reply.foreign_content import CONTAINMENT_HEADERS, contain_type
from kairship.apiserver.proxy.request import headers
from kairship.index import statuses as statuses_of_lists
from kairship.kube import UpgradeRefused
from kairship.rpc.errors import ApiError, Unavailable

SOURCE = "X-Kairship-Source"
INSTANCE = "instance"
INDEX = "index"
_WITHOUT_BODY = frozenset({204, 304})
NOT_RECORDED = f'299 kairship "{index.NOT_NOTED}"'
"""The value of the header `Warning` when a write may be missing in the caller's next reads."""


def set_common_headers(found: MutableMapping[str, str], request_id: str, source: str = INSTANCE) -> None:
    found[SOURCE] = source
    found["X-Request-Id"] = request_id
    found.update(CONTAINMENT_HEADERS)


def foreign_headers(
    status: int, upstream: CIMultiDictProxy[str] | CIMultiDict[str], request_id: str
) -> CIMultiDict[str]:
    """The headers of an instance's or member's reply that are passed on, and those that contain it."""
    found = headers.response_headers(upstream)
    if status not in _WITHOUT_BODY or "Content-Type" in found:
        contain_type(found)
    set_common_headers(found, request_id)
    return found


def index_response(answer: Answer, request_id: str) -> web.StreamResponse:
    return web.StreamResponse(status=answer.status, headers=_answer_headers(answer, request_id))


def complete_index_response(
    request: web.BaseRequest, answer: Answer, body: bytes, request_id: str
) -> web.StreamResponse:
    return complete_response(request, answer.status, _answer_headers(answer, request_id), body)


def complete_response(
    request: web.BaseRequest, status: int, headers: CIMultiDict[str], body: bytes
) -> web.StreamResponse:
    """For every method but HEAD."""
    if request.version != HttpVersion11 or status in _WITHOUT_BODY:
        return web.Response(status=status, headers=headers, body=body)
    return CompleteResponse(status, headers, body)


def _answer_headers(answer: Answer, request_id: str) -> CIMultiDict[str]:
    found = CIMultiDict(answer.headers)
    contain_type(found)  # a watch that the index does not answer has the type that the member says
    set_common_headers(found, request_id, INDEX if answer.from_index else INSTANCE)
    return found


def expired_page(request_id: str) -> web.StreamResponse:
    """For a page token of the index whose next page the index cannot give: the instance does not know the token."""
    body = statuses_of_lists.expired("the list cannot be continued from where it was begun: begin again")
    response = web.Response(status=410, body=body, content_type="application/json")
    set_common_headers(response.headers, request_id, INDEX)
    return response


def source_of(response: web.StreamResponse | None) -> str:
    return INSTANCE if response is None else response.headers.get(SOURCE, INSTANCE)


def refusal(error: ApiError, request_id: str, *, status: int | None = None) -> web.Response:
    """The proxy's own error, as a `Status`. `status` is the HTTP status, if it is not the error's usual one."""
    response = web.Response(
        body=statuses.status_of(error), status=status or error.http_status, content_type="application/json"
    )
    response.headers["X-Request-Id"] = request_id
    response.headers.update(CONTAINMENT_HEADERS)
    retry_after = statuses.retry_seconds(error)
    if retry_after is not None:
        response.headers["Retry-After"] = str(retry_after)
    return response


def refused_upgrade(answer: UpgradeRefused, request_id: str) -> web.Response:
    """The instance's reply to an upgrade that it does not agree to."""
    if 300 <= answer.status < 400 or answer.status < 200:
        raise Unavailable("the cluster answered the upgrade with a redirect, which is not followed")
    found = foreign_headers(answer.status, answer.headers, request_id)
    found.popall("Content-Length", None)
    return web.Response(body=answer.body, status=answer.status, headers=found)


def switching_protocols(headers: CIMultiDict[str]) -> bytes:
    """The head of the reply that agrees to an upgrade."""
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise Unavailable("the cluster answered the upgrade with a header that is not valid HTTP")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
