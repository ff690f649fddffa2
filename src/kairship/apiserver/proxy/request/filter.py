"""Authenticates and authorises a proxy request.

An `AdmittedRequest` is the only thing that the rest of the proxy accepts, and this is the only module that makes one.
"""

from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from kairship.apiserver.auth.authentication import Authenticator
from kairship.apiserver.auth.authorisation import require_same_page
from kairship.apiserver.auth.revocation import RevocationCheck
from kairship.apiserver.proxy.request import headers
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.audit import ProxyAudit
from kairship.apiserver.proxy.request.authorisation import Authorisation, ProxyAuthoriser
from kairship.apiserver.proxy.request.request_line import RequestLine
from kairship.apiserver.proxy.request.target import Target
from kairship.resources import reserved_names
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import ApiError, Unavailable


class ExecutionNamespaces(Protocol):
    """The namespaces in which Karmada keeps the Works of members. A selector needs their names: it has no prefixes."""

    def of(self, instance: str) -> tuple[str, ...]: ...


class RequestFilter:
    def __init__(
        self,
        authenticator: Authenticator,
        *,
        revocation: RevocationCheck,
        authoriser: ProxyAuthoriser,
        audit: ProxyAudit,
        execution_namespaces: ExecutionNamespaces,
    ) -> None:
        self._authenticator = authenticator
        self._revocation = revocation
        self._authoriser = authoriser
        self._audit = audit
        self._execution_namespaces = execution_namespaces

    async def admit(self, request: web.BaseRequest, line: RequestLine, envelope: Envelope) -> AdmittedRequest:
        """Raises `ApiError` if the request is refused. A refusal to an authenticated caller is in the audit."""
        caller = await self._authenticator.authenticate(envelope)
        if envelope.csrf is not None:
            require_same_page(caller, envelope.csrf)
        headers.refuse_impersonation(request.headers)
        headers.require_same_origin(request.headers)
        try:
            if objection := self._revocation.objection_to(caller, delicate=line.needs_current_rights):
                raise objection
            authorisation = self._authoriser.authorise(caller, line.target, line.request_info)
            left_out = self._left_out(line.target, authorisation)
        except ApiError as error:
            self._audit.record_refusal(caller, line.target, line.request_info, envelope, error.http_status)
            raise
        return AdmittedRequest(request, line, caller, authorisation, envelope, left_out)

    def objection(self, admitted: AdmittedRequest) -> Callable[[], ApiError | None]:
        """The check that is repeated while a stream lasts: it says why the stream must end."""

        def check() -> ApiError | None:
            if objection := self._revocation.objection_to(admitted.caller, delicate=admitted.line.needs_current_rights):
                return objection
            try:
                now = self._authoriser.authorise(admitted.caller, admitted.target, admitted.request_info)
                left_out = self._left_out(admitted.target, now)
            except ApiError as error:
                return error
            if admitted.authorisation.granted and not now.granted:
                return Unavailable("your rights have changed; call again", retry_after=1.0)
            if left_out != admitted.left_out:
                return Unavailable("the namespaces that you may see have changed; call again", retry_after=1.0)
            return None

        return check

    def _left_out(self, target: Target, authorisation: Authorisation) -> tuple[str, ...]:
        if authorisation.reserved:
            return ()
        if target.cluster is not None:
            return reserved_names()
        return (*reserved_names(), *self._execution_namespaces.of(target.instance))
