"""A request that was let in, on its way."""

import msgspec
from aiohttp import web

from kairship.apiserver.admission import Place
from kairship.apiserver.proxy.asking import Asked, AskedPath, is_set
from kairship.apiserver.proxy.rights import Admitted
from kairship.apiserver.proxy.target import Target
from kairship.rpc.calls import Caller, Envelope

_LONGEST_WATCH = 3600.0
_SILENCE = 60.0
"""Seconds in which some part of a reply must come that is not a stream."""


class Passing(msgspec.Struct, frozen=True, kw_only=True):
    request: web.BaseRequest
    target: Target
    asked: Asked | AskedPath
    parameters: dict[str, str]
    repeats: bool
    """Whether one of the parameters is there more than once."""
    query: str
    caller: Caller
    admitted: Admitted
    envelope: Envelope

    @property
    def upstream(self) -> str:
        return f"{self.target.upstream}?{self.query}" if self.query else self.target.upstream

    @property
    def verb(self) -> str:
        return self.asked.attributes.verb if isinstance(self.asked, Asked) else "discover"

    @property
    def place(self) -> Place:
        """What may be slow or silent without the others' being so: the instance, or a member of it."""
        target = self.target
        return Place(f"cluster {target.cluster} of {target.instance}" if target.cluster else target.instance)

    @property
    def is_wide(self) -> bool:
        """Whether it asks for as many objects as there are."""
        return self.verb in {"list", "deletecollection"} and "limit" not in self.parameters

    @property
    def lasts(self) -> bool:
        """Whether the reply goes on for as long as the caller wants: a watch, or logs that are followed."""
        if isinstance(self.asked, AskedPath):
            return False
        follows = self.asked.attributes.subresource == "log" and is_set(self.parameters, "follow")
        return self.asked.watches or follows

    @property
    def upgrades(self) -> bool:
        """Whether the connection is to stop being HTTP: exec, attach and port-forward."""
        return bool(self.request.headers.get("Upgrade"))

    @property
    def longest_silence(self) -> float:
        if not self.lasts:
            return _SILENCE
        try:
            return min(_LONGEST_WATCH, float(self.parameters.get("timeoutSeconds", _LONGEST_WATCH))) + 30.0
        except ValueError:
            return _LONGEST_WATCH
