"""One request being served, whatever it came by: REST, gRPC or the proxy.

Services receive a `Call` beside each request: who asks, under which id the logs know it, and how long there is.
"""

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from kairship.resources import Reach
from kairship.rpc.sight import Sight
from kairship.wire import Method

MOST_WARNINGS = 20
_LONGEST = 30.0
_SHORTEST = 0.05
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Caller(msgspec.Struct, frozen=True):
    """Who asks. Only an `Authenticator` makes one."""

    id: str
    name: str
    groups: tuple[str, ...] = ()
    authenticated_by: str = "token"
    """How it was shown who it is: "token" or "session"; "nothing" of whoever is not signed in."""
    session: str = ""
    """The session that the call belongs to; empty with an access token."""
    csrf: str = ""
    """What a browser must repeat in a header with everything that changes something; empty outside a session."""
    limited_to: frozenset[str] | None = None
    """The permissions that an access token is for; None for all that its owner has."""
    must_change_password: bool = False
    """Until that is done, nothing else is allowed."""
    token: str = ""
    """The access token that was shown, by its id; empty in a session."""
    only_instance: str = ""
    """The one instance whose native API an access token is good for, and nothing else; empty for everything."""


NOBODY = Caller(id="", name="", authenticated_by="nothing")
"""Whoever calls what everybody may call, which is no more than signing in."""


@dataclass(slots=True, kw_only=True)
class Call:
    request_id: str
    caller: Caller
    method: Method
    deadline: float
    """When the reply must be there, by `time.monotonic`."""
    origin: str = ""
    """The address that the request came from."""
    sight: Sight = field(default_factory=Sight)
    """What of the platform its reply may be about, if the caller needs to hold the permission on a part only."""
    reach_of: Callable[[str], Reach] = lambda _: Reach()
    """Where the caller holds another permission than the one of the method. Nowhere, unless somebody has said so."""
    groups_inside: tuple[str, ...] = ()
    """Those of the caller's groups that the instance is told of which the request names."""
    warnings: list[str] = field(default_factory=list)
    data_age: float | None = None
    """How many seconds old the oldest part of the reply may be; None if nobody has said so."""

    def remaining(self) -> float:
        """Seconds until the deadline, never negative: the timeout of a call that this one makes."""
        return max(0.0, self.deadline - time.monotonic())

    def note_age(self, seconds: float) -> None:
        """Tell the caller how old what was read may be."""
        self.data_age = max(seconds, self.data_age or 0.0)

    def warn(self, text: str) -> None:
        """Tell the caller something beside the reply: a `Warning` header, or metadata of the same name.

        A request can be made to cause any number of them; those beyond some are left out.
        """
        if len(self.warnings) < MOST_WARNINGS:
            self.warnings.append("".join(c if c.isprintable() else "?" for c in text))


def patience(call: Call) -> float:
    """The timeout of one call to an API server within this request."""
    return max(_SHORTEST, min(_LONGEST, call.remaining()))


class Envelope(msgspec.Struct, frozen=True):
    """What is around a request, whatever it came by."""

    headers: Mapping[str, str]
    """Headers of HTTP or metadata of gRPC; asked with names in lower case."""
    origin: str
    """The address that it came from."""
    request_id: str
    csrf: str | None = None
    """What a browser repeats to show that its own page asks, not another one in its name. None if that is not needed:
    the credential did not come by itself, or nothing is changed."""

    @classmethod
    def around(cls, headers: Mapping[str, str], origin: str) -> "Envelope":
        """Its id is the one that the caller or a proxy has given, if it can be written everywhere, or a new one."""
        given = headers.get("x-request-id", "")
        return cls(headers, origin, given if given and _REQUEST_ID.fullmatch(given) else new_request_id())


def new_request_id() -> str:
    return f"{random.getrandbits(64):016x}"
