"""A request that was authenticated and authorised: the only thing that the rest of the proxy accepts."""

from collections.abc import Mapping

import msgspec
from aiohttp import web

from kairship.apiserver.proxy.request.authorisation import Authorisation
from kairship.apiserver.proxy.request.field_selector import selector_without, without_namespaces
from kairship.apiserver.proxy.request.request_info import RequestInfo
from kairship.apiserver.proxy.request.request_line import RequestLine
from kairship.apiserver.proxy.request.target import Target
from kairship.rpc.calls import Caller, Envelope

_LONGEST_WATCH = 3600.0
_IDLE_TIMEOUT = 60.0
"""Seconds within which the next bytes of a reply must arrive, unless the request is long-running."""


class AdmittedRequest(msgspec.Struct, frozen=True):
    request: web.BaseRequest
    line: RequestLine
    caller: Caller
    authorisation: Authorisation
    envelope: Envelope
    left_out: tuple[str, ...]
    """Reserved namespaces that a request over all namespaces does not concern, because its caller may not use them."""

    @property
    def target(self) -> Target:
        return self.line.target

    @property
    def request_info(self) -> RequestInfo:
        return self.line.request_info

    @property
    def parameters(self) -> Mapping[str, str]:
        return self.line.parameters

    @property
    def upstream_path(self) -> str:
        """The path at the instance's API server, with the query. The query leaves out what `left_out` names."""
        query = without_namespaces(self.line.query, self.left_out) if self.left_out else self.line.query
        return _with_query(self.line.target, query)

    @property
    def upstream_path_of_cluster_scoped(self) -> str:
        """The same for a kind without namespaces, of which nothing can be left out."""
        return _with_query(self.line.target, self.line.query)

    @property
    def upstream_parameters(self) -> Mapping[str, str]:
        """The parameters of `upstream_path`."""
        if not self.left_out:
            return self.parameters
        selector = selector_without(self.left_out, self.parameters.get("fieldSelector", ""))
        return {**self.parameters, "fieldSelector": selector}

    @property
    def is_upgrade(self) -> bool:
        """Whether the client wants the connection to stop being HTTP: exec, attach and port-forward."""
        return bool(self.request.headers.get("Upgrade"))

    @property
    def idle_timeout(self) -> float:
        """Seconds for which the reply may be silent. A watch may be silent for as long as it lasts."""
        if not self.line.is_long_running:
            return _IDLE_TIMEOUT
        try:
            return min(_LONGEST_WATCH, float(self.parameters.get("timeoutSeconds", _LONGEST_WATCH))) + 30.0
        except ValueError:
            return _LONGEST_WATCH


def _with_query(target: Target, query: str) -> str:
    return f"{target.upstream_path}?{query}" if query else target.upstream_path
