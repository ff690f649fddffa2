"""Sessions of browsers: tokens in cookies that no script can read and no other site can use.

A page that signs a user in sends `X-Kairship-Session: cookie`, which no form of another site can send. The tokens are
then set as cookies and left out of the reply. The page keeps the CSRF token, and sends it with every request that
changes something. Programs do not send this header: they get their tokens in the reply, and never a cookie.

A sign-in with an identity provider ends in the browser that began it: the `state` is in a cookie as well, and a page
that returns with another one is refused. Otherwise a link could sign a user in as somebody else.
"""

import hmac
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from multidict import CIMultiDict
from protobuf import Message

from kairship.apiserver.flowcontrol.client_address import HEADER, TrustedProxies
from kairship.gen.kairship.ghippo.v1alpha1.session_pb import (
    BeginProviderLoginResponse,
    FinishProviderLoginRequest,
    LoginResponse,
    RefreshTokenRequest,
)
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import PermissionDenied
from kairship.wire import Method

SESSION_HEADER, COOKIE = "X-Kairship-Session", "cookie"
CSRF = "X-CSRF-Token"
SESSION = "__Host-kairship-session"
REFRESH = "__Secure-kairship-refresh"
STATE = "__Host-kairship-login"

_SERVICE = "/kairship.ghippo.v1alpha1.Sessions/"
_REFRESH_TOKEN, _LOGOUT = f"{_SERVICE}RefreshToken", f"{_SERVICE}Logout"
_BEGIN, _FINISH = f"{_SERVICE}BeginProviderLogin", f"{_SERVICE}FinishProviderLogin"
_SIGN_IN = frozenset({f"{_SERVICE}Login", _BEGIN, _FINISH, _REFRESH_TOKEN})
_REFRESH_PATH = "/apis/ghippo.io/v1alpha1/refresh-token"
_SAFE_METHODS = ("GET", "HEAD")
_OWN_SITE = ("", "same-origin", "none")
_OF_SCRIPTS = ("", "empty", "websocket")
_NAVIGATION = ("navigate", "nested-navigate")


def envelope_of(request: web.BaseRequest, trusted_proxies: TrustedProxies, *, foreign_reply: bool = False) -> Envelope:
    """Returns the request's envelope. If the request comes from our own page and has no `Authorization` header, the
    session cookie becomes one.

    With `foreign_reply` an instance or member answers. The cookie is then a credential of our scripts only: a browser
    that is led to such a reply, or that embeds it, gets none.
    """
    headers = request.headers
    origin = request.remote or ""
    if HEADER in headers:
        origin = trusted_proxies.client_address(origin, headers.getall(HEADER))
    plain = Envelope.around(headers, origin)
    if "Authorization" in headers or headers.get("Sec-Fetch-Site", "") not in _OWN_SITE:
        return plain
    if foreign_reply and not _is_of_a_script(headers):
        return plain
    token = request.cookies.get(SESSION)
    if not token:
        return plain
    completed = CIMultiDict(headers)
    completed["Authorization"] = f"Bearer {token}"
    csrf = None if request.method in _SAFE_METHODS else headers.get(CSRF, "")
    return Envelope(completed, plain.origin, plain.request_id, csrf)


def _is_of_a_script(headers: Mapping[str, str]) -> bool:
    """Whether a script sends the request, or a program, which says nothing of it."""
    destination, mode = headers.get("Sec-Fetch-Dest", ""), headers.get("Sec-Fetch-Mode", "")
    return destination in _OF_SCRIPTS and mode not in _NAVIGATION


class BrowserSession:
    """The cookies of one request and its reply."""

    def __init__(self, request: web.BaseRequest, method: Method) -> None:
        self._request = request
        self._method = method
        self._wants_cookies = method.path in _SIGN_IN and request.headers.get(SESSION_HEADER, "") == COOKIE
        self._tokens: LoginResponse | None = None
        self._state = ""

    def complete(self, message: Message[Any]) -> None:
        """Adds the refresh token from its cookie: the page cannot send it, because it cannot read it.

        Raises `PermissionDenied` if another browser began the sign-in with an identity provider that this one ends.
        """
        if self._wants_cookies and isinstance(message, FinishProviderLoginRequest):
            begun = self._request.cookies.get(STATE, "").encode()
            if not begun or not hmac.compare_digest(begun, message.state.encode("utf-8", "surrogatepass")):
                raise PermissionDenied("this sign-in did not begin in this browser; begin it here again")
        if self._wants_cookies and isinstance(message, RefreshTokenRequest) and not message.refresh_token:
            message.refresh_token = self._request.cookies.get(REFRESH, "")

    def take_tokens(self, reply: Message[Any]) -> Message[Any]:
        """Returns the reply without the tokens, which become cookies."""
        if self._wants_cookies and isinstance(reply, BeginProviderLoginResponse):
            self._state = reply.state
        if not self._wants_cookies or not isinstance(reply, LoginResponse):
            return reply
        self._tokens = reply
        return LoginResponse(
            expires_at=reply.expires_at,
            csrf_token=reply.csrf_token,
            must_change_password=reply.must_change_password,
            user=reply.user,
        )

    def set_cookies(self, response: web.Response) -> web.Response:
        if self._state:
            _set(response, STATE, self._state, path="/")
        if self._method.path == _FINISH and self._tokens is not None:
            _set(response, STATE, "", path="/")
        if self._tokens is not None:
            _set(response, SESSION, self._tokens.token, path="/")
            _set(response, REFRESH, self._tokens.refresh_token, path=_REFRESH_PATH)
        elif self._ends(response):
            _set(response, SESSION, "", path="/")
            _set(response, REFRESH, "", path=_REFRESH_PATH)
        return response

    def _ends(self, response: web.Response) -> bool:
        """Returns whether the session is over: after a logout, or when the refresh token is no longer valid."""
        if self._method.path == _LOGOUT:
            return response.status == 200 and SESSION in self._request.cookies
        return self._wants_cookies and self._method.path == _REFRESH_TOKEN and response.status == 401


def _set(response: web.Response, name: str, value: str, *, path: str) -> None:
    """Sets a cookie without an age: it ends with the browser. The token in it expires earlier."""
    response.set_cookie(
        name, value, path=path, secure=True, httponly=True, samesite="Strict", max_age=None if value else 0
    )
