"""The headers that are forwarded, by allow-lists: a header that is not named here is dropped.

So neither the caller's credential nor a claim to be another user reaches an instance, whatever the header is called;
and no reply of a member can set a cookie on the entrance's domain or redirect a client.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from multidict import CIMultiDict, CIMultiDictProxy

from kairship.rpc.errors import PermissionDenied


def _lower(*names: str) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


_REQUEST = _lower(
    "Accept",
    "Accept-Encoding",
    "Content-Type",
    "If-Match",
    "If-None-Match",
    "If-Modified-Since",
    "Kubectl-Command",
    "Kubectl-Session",
    "Traceparent",
    "User-Agent",
    "X-Request-Id",
)
_RESPONSE = _lower(
    "Audit-Id",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Etag",
    "Last-Modified",
    "Retry-After",
    "Vary",
    "Warning",
    "X-Kubernetes-Pf-Flowschema-Uid",
    "X-Kubernetes-Pf-Prioritylevel-Uid",
    "X-Varied-Accept",
)
_UPGRADE_REQUEST = _lower(
    "User-Agent",
    "X-Request-Id",
    "X-Stream-Protocol-Version",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Extensions",
)
_UPGRADE_RESPONSE = _lower(
    "X-Stream-Protocol-Version",
    "X-Accepted-Stream-Protocol-Versions",
    "Sec-WebSocket-Accept",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Extensions",
)
_PROTOCOLS = "Sec-WebSocket-Protocol"
_BEARER = "base64url.bearer.authorization.k8s.io."
"""The prefix of the subprotocol in which a browser sends a token, because it cannot set headers of a WebSocket."""


def refuse_impersonation(headers: Mapping[str, str]) -> None:
    """Refuses `kubectl --as`. With these headers merely dropped, the request would be made in the caller's own name."""
    for name in headers:
        if name[:12].lower() == "impersonate-":
            raise PermissionDenied(
                "impersonation is not possible through the plane: every request is made in your own name; "
                "leave out --as and the Impersonate-* headers"
            )


def require_same_origin(headers: Mapping[str, str]) -> None:
    """Refuses an upgrade from a page of another site: browsers open WebSockets to any site, with its cookies."""
    if "Upgrade" not in headers or "Authorization" in headers:
        return
    if urlsplit(headers.get("Origin", "")).netloc.lower() != headers.get("Host", "").lower():
        raise PermissionDenied(
            "a page of another origin may not open a stream here; open it from the plane's own page, or send a token "
            "in the header Authorization"
        )


def request_headers(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return _picked(headers, _REQUEST)


def response_headers(headers: CIMultiDictProxy[str] | CIMultiDict[str]) -> CIMultiDict[str]:
    return _picked(headers, _RESPONSE)


def upgrade_request_headers(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    picked = _picked(headers, _UPGRADE_REQUEST)
    picked["Connection"] = "Upgrade"
    picked["Upgrade"] = headers.get("Upgrade", "")
    protocols = [part.strip() for value in headers.getall(_PROTOCOLS, ()) for part in value.split(",")]
    if kept := [protocol for protocol in protocols if protocol and not protocol.startswith(_BEARER)]:
        picked[_PROTOCOLS] = ", ".join(kept)
    return picked


def upgrade_response_headers(headers: CIMultiDictProxy[str] | CIMultiDict[str], upgrade: str) -> CIMultiDict[str]:
    """`upgrade` is the protocol that the client asked for."""
    picked = _picked(headers, _UPGRADE_RESPONSE)
    picked["Connection"] = "Upgrade"
    picked["Upgrade"] = upgrade
    return picked


def _picked(headers: CIMultiDictProxy[str] | CIMultiDict[str], names: frozenset[str]) -> CIMultiDict[str]:
    return CIMultiDict([each for each in headers.items() if each[0].lower() in names])
