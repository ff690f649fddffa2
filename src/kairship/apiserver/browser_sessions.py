"""Sessions of browsers: tokens in cookies that no script can read and no other site can use.

A page that signs somebody in sends `X-Kairship-Session: cookie`, which no form of another site can. The tokens then
come as cookies and not in the reply; what the page keeps is the CSRF token, and it sends that along with everything
that changes something. Programs send nothing of this, get their tokens in the reply, and never a cookie.
"""

from typing import Any
from urllib.parse import unquote_plus

from aiohttp import web
from multidict import CIMultiDict
from protobuf import Message

from kairship.apiserver.origins import HEADER, Origins
from kairship.gen.kairship.ghippo.v1alpha1.session_pb import LoginResponse, RefreshTokenRequest
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import InvalidArgument
from kairship.wire import Method

WISH, COOKIE = "X-Kairship-Session", "cookie"
CSRF = "X-CSRF-Token"
SESSION = "__Host-kairship-session"
REFRESH = "__Secure-kairship-refresh"

_SERVICE = "/kairship.ghippo.v1alpha1.Sessions/"
_REFRESHING, _LOGOUT = f"{_SERVICE}RefreshToken", f"{_SERVICE}Logout"
_SIGN_IN = frozenset({f"{_SERVICE}Login", f"{_SERVICE}FinishProviderLogin", _REFRESHING})
_REFRESH_PATH = "/apis/ghippo.io/v1alpha1/refresh-token"
_HARMLESS = ("GET", "HEAD")
_OWN_SITE = ("", "same-origin", "none")
_SECRETS = frozenset({"token", "access_token", "id_token", "refresh_token", "authorization", "api_key", "password"})


def refuse_secrets(query: str) -> None:
    """What is in an address is in histories and in the logs of everything on the way."""
    for part in query.split("&") if query else ():
        if unquote_plus(part.partition("=")[0]).lower().replace("-", "_") in _SECRETS:
            raise InvalidArgument("a token does not belong into an address: send it as `Authorization: Bearer`")


def envelope_of(request: web.BaseRequest, origins: Origins) -> Envelope:
    """With the token of a cookie in its place, if it comes from our own page and there is no other."""
    headers = request.headers
    origin = request.remote or ""
    if HEADER in headers:
        origin = origins.of(origin, headers.getall(HEADER))
    plain = Envelope.around(headers, origin)
    if "Authorization" in headers or headers.get("Sec-Fetch-Site", "") not in _OWN_SITE:
        return plain
    token = request.cookies.get(SESSION)
    if not token:
        return plain
    completed = CIMultiDict(headers)
    completed["Authorization"] = f"Bearer {token}"
    csrf = None if request.method in _HARMLESS else headers.get(CSRF, "")
    return Envelope(completed, plain.origin, plain.request_id, csrf)


class BrowserSession:
    """What one request has to do with cookies."""

    def __init__(self, request: web.BaseRequest, method: Method) -> None:
        self._request = request
        self._method = method
        self._wanted = method.path in _SIGN_IN and request.headers.get(WISH, "") == COOKIE
        self._tokens: LoginResponse | None = None

    def complete(self, message: Message[Any]) -> None:
        """The refresh token that a page cannot send, because it cannot read it."""
        if self._wanted and isinstance(message, RefreshTokenRequest) and not message.refresh_token:
            message.refresh_token = self._request.cookies.get(REFRESH, "")

    def keep(self, reply: Message[Any]) -> Message[Any]:
        """The reply without the tokens that become cookies."""
        if not self._wanted or not isinstance(reply, LoginResponse):
            return reply
        self._tokens = reply
        return LoginResponse(
            expires_at=reply.expires_at,
            csrf_token=reply.csrf_token,
            must_change_password=reply.must_change_password,
            user=reply.user,
        )

    def conclude(self, response: web.Response) -> web.Response:
        if self._tokens is not None:
            _set(response, SESSION, self._tokens.token, path="/")
            _set(response, REFRESH, self._tokens.refresh_token, path=_REFRESH_PATH)
        elif self._ends(response):
            _set(response, SESSION, "", path="/")
            _set(response, REFRESH, "", path=_REFRESH_PATH)
        return response

    def _ends(self, response: web.Response) -> bool:
        """Signing out ends it, and so does a refresh token that is not good any more."""
        if self._method.path == _LOGOUT:
            return response.status == 200 and SESSION in self._request.cookies
        return self._wanted and self._method.path == _REFRESHING and response.status == 401


def _set(response: web.Response, name: str, value: str, *, path: str) -> None:
    """Without an age: it ends with the browser. What it holds ends before that."""
    response.set_cookie(
        name, value, path=path, secure=True, httponly=True, samesite="Strict", max_age=None if value else 0
    )
