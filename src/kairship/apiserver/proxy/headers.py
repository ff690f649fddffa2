"""Which headers pass. Those that are named here, and no others.

Neither what the caller showed us nor who the caller would like to be goes on, whatever it is called and wherever it is
hidden; and nothing that a member says can set a cookie here or lead a client elsewhere.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from multidict import CIMultiDict, CIMultiDictProxy

from kairship.rpc.errors import PermissionDenied


def _lower(*names: str) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


_THERE = _lower(
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
_BACK = _lower(
    "Audit-Id",
    "Cache-Control",
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
_UPGRADE_THERE = _lower(
    "User-Agent",
    "X-Request-Id",
    "X-Stream-Protocol-Version",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Extensions",
)
_UPGRADE_BACK = _lower(
    "X-Stream-Protocol-Version",
    "X-Accepted-Stream-Protocol-Versions",
    "Sec-WebSocket-Accept",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Extensions",
)
_PROTOCOLS = "Sec-WebSocket-Protocol"
_BEARER = "base64url.bearer.authorization.k8s.io."
"""How a browser, which cannot set headers of a WebSocket, shows a token."""


def require_oneself(headers: Mapping[str, str]) -> None:
    """`kubectl --as` would be done in the caller's own name otherwise, which nobody expects."""
    for name in headers:
        if name[:12].lower() == "impersonate-":
            raise PermissionDenied("nobody may act as somebody else through the plane; leave out --as")


def require_own_page(headers: Mapping[str, str]) -> None:
    """Browsers open WebSockets to any site, with its cookies: a page of somebody else must not get a terminal."""
    if "Upgrade" not in headers or "Authorization" in headers:
        return
    if urlsplit(headers.get("Origin", "")).netloc.lower() != headers.get("Host", "").lower():
        raise PermissionDenied("this page may not open a stream here")


def going_there(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return _picked(headers, _THERE)


def coming_back(headers: CIMultiDictProxy[str] | CIMultiDict[str]) -> CIMultiDict[str]:
    return _picked(headers, _BACK)


def upgrade_going_there(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    passed = _picked(headers, _UPGRADE_THERE)
    passed["Connection"] = "Upgrade"
    passed["Upgrade"] = headers.get("Upgrade", "")
    protocols = [part.strip() for value in headers.getall(_PROTOCOLS, ()) for part in value.split(",")]
    if kept := [protocol for protocol in protocols if protocol and not protocol.startswith(_BEARER)]:
        passed[_PROTOCOLS] = ", ".join(kept)
    return passed


def upgrade_coming_back(headers: CIMultiDictProxy[str] | CIMultiDict[str], upgrade: str) -> CIMultiDict[str]:
    passed = _picked(headers, _UPGRADE_BACK)
    passed["Connection"] = "Upgrade"
    passed["Upgrade"] = upgrade
    return passed


def _picked(headers: CIMultiDictProxy[str] | CIMultiDict[str], names: frozenset[str]) -> CIMultiDict[str]:
    return CIMultiDict([each for each in headers.items() if each[0].lower() in names])
