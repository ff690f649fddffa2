"""Who comes in: authentication, what is asked for, and rights. What is let in is a `Passing`; nothing else goes on."""

from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from kairship.apiserver.authentication import Authenticator
from kairship.apiserver.authorisation import require_same_page
from kairship.apiserver.proxy import headers
from kairship.apiserver.proxy.auditing import ProxyAudit
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.proxy.request_line import RequestLine
from kairship.apiserver.proxy.rights import ProxyRights
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import ApiError, Unavailable


class Vouching(Protocol):
    def objection_to(self, caller: Caller, *, delicate: bool) -> ApiError | None:
        """Why somebody who was authenticated must not go on."""
        ...


class Door:
    def __init__(
        self, authenticator: Authenticator, *, callers: Vouching, rights: ProxyRights, audit: ProxyAudit
    ) -> None:
        self._authenticator = authenticator
        self._callers = callers
        self._rights = rights
        self._audit = audit

    async def let_in(self, request: web.BaseRequest, line: RequestLine, envelope: Envelope) -> Passing:
        """Raises `ApiError`. Refusals are remembered."""
        caller = await self._authenticator.authenticate(envelope)
        if envelope.csrf is not None:
            require_same_page(caller, envelope.csrf)
        headers.require_oneself(request.headers)
        headers.require_own_page(request.headers)
        try:
            if objection := self._callers.objection_to(caller, delicate=line.is_delicate):
                raise objection
            admitted = self._rights.admit(caller, line.target, line.asked)
        except ApiError as error:
            self._audit.refused(caller, line.target, line.asked, envelope, error.http_status)
            raise
        return Passing(request, line, caller, admitted, envelope)

    def objection(self, passing: Passing) -> Callable[[], ApiError | None]:
        """Why a stream must not go on: what was granted must still be."""

        def ask() -> ApiError | None:
            if objection := self._callers.objection_to(passing.caller, delicate=passing.line.is_delicate):
                return objection
            try:
                now = self._rights.admit(passing.caller, passing.target, passing.asked)
            except ApiError as error:
                return error
            if passing.admitted.granted and not now.granted:
                return Unavailable("your rights have changed; call again", retry_after=1.0)
            return None

        return ask
