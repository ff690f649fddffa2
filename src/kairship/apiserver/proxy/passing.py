"""A request that was let in, on its way."""

from collections.abc import Mapping

import msgspec
from aiohttp import web

from kairship.apiserver.proxy.asking import Asked, AskedPath
from kairship.apiserver.proxy.request_line import RequestLine
from kairship.apiserver.proxy.rights import Admitted
from kairship.apiserver.proxy.target import Target
from kairship.rpc.calls import Caller, Envelope

_LONGEST_WATCH = 3600.0
_SILENCE = 60.0
"""Seconds in which some part of a reply must come that is not a stream."""


class Passing(msgspec.Struct, frozen=True):
    request: web.BaseRequest
    line: RequestLine
    caller: Caller
    admitted: Admitted
    envelope: Envelope

    @property
    def target(self) -> Target:
        return self.line.target

    @property
    def asked(self) -> Asked | AskedPath:
        return self.line.asked

    @property
    def parameters(self) -> Mapping[str, str]:
        return self.line.parameters

    @property
    def upstream(self) -> str:
        target, query = self.line.target, self.line.query
        return f"{target.upstream}?{query}" if query else target.upstream

    @property
    def upgrades(self) -> bool:
        """Whether the connection is to stop being HTTP: exec, attach and port-forward."""
        return bool(self.request.headers.get("Upgrade"))

    @property
    def longest_silence(self) -> float:
        if not self.line.lasts:
            return _SILENCE
        try:
            return min(_LONGEST_WATCH, float(self.parameters.get("timeoutSeconds", _LONGEST_WATCH))) + 30.0
        except ValueError:
            return _LONGEST_WATCH
