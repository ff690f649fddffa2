"""One request being served, whether it came by REST, by gRPC or through the proxy.

A service receives a `Call` beside each request: who the caller is, the request id of the logs, and the deadline.
"""

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from kairship.resources import Coverage
from kairship.rpc.sight import Sight
from kairship.wire import Method

_MOST_WARNINGS = 20
_LONGEST = 30.0
_SHORTEST = 0.05
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Caller(msgspec.Struct, frozen=True):
    """An authenticated user or process. Only an `Authenticator` makes one."""

    id: str
    name: str
    groups: tuple[str, ...] = ()
    authenticated_by: str = "token"
    """How the caller was authenticated: by "token", "session" or "service"; by "nothing" if it is anonymous."""
    session: str = ""
    """The session that the call belongs to; empty if the caller has an access token."""
    csrf: str = ""
    """The CSRF token that a browser must repeat in a header of every changing request; empty outside a session."""
    limited_to: frozenset[str] | None = None
    """The permissions to which an access token is limited; None for all that its owner has."""
    must_change_password: bool = False
    """Until the user has changed the password, nothing else is allowed."""
    token: str = ""
    """The id of the access token that the caller has presented; empty in a session."""
    only_instance: str = ""
    """The one instance to whose native API an access token is limited; empty if the token is not limited so."""


ANONYMOUS = Caller(id="", name="", authenticated_by="nothing")
"""The caller of methods that need no authentication, such as signing in."""


@dataclass(slots=True, kw_only=True)
class Call:
    """The context of one request."""

    request_id: str
    caller: Caller
    method: Method
    deadline: float
    """The time by `time.monotonic` at which the reply must be there."""
    origin: str = ""
    """The address that the request came from."""
    sight: Sight = field(default_factory=Sight)
    """What the reply may be about, where holding the permission on a part of the platform is enough."""
    coverage_of: Callable[[str], Coverage] = lambda _: Coverage()
    """Where the caller holds a permission other than the method's; nowhere, unless authorisation has set this."""
    groups_inside: tuple[str, ...] = ()
    """The caller's groups that are passed to the instance which the request names."""
    warnings: list[str] = field(default_factory=list)
    data_age: float | None = None
    """How many seconds old the oldest part of the reply may be; None if the service has not said."""

    def remaining(self) -> float:
        """The seconds until the deadline, never negative: the timeout of a further call that this one makes."""
        return max(0.0, self.deadline - time.monotonic())

    def note_age(self, seconds: float) -> None:
        """Tells the caller that data of this age was read; the oldest counts."""
        self.data_age = max(seconds, self.data_age or 0.0)

    def warn(self, text: str) -> None:
        """Adds a warning to the reply: a `Warning` header, or metadata of the same name.

        A request could be made to cause any number of warnings, so further ones are dropped.
        """
        if len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append("".join(c if c.isprintable() else "?" for c in text))


def patience(call: Call) -> float:
    """The timeout of one call to an API server that serves this request."""
    return max(_SHORTEST, min(_LONGEST, call.remaining()))


class Envelope(msgspec.Struct, frozen=True):
    """A request without its message, whether it came by HTTP or by gRPC."""

    headers: Mapping[str, str]
    """The headers of HTTP or the metadata of gRPC, with names in lower case."""
    origin: str
    """The address that the request came from."""
    request_id: str
    csrf: str | None = None
    """The CSRF token that a browser repeats to show that our own page sends the request. None if that is not needed:
    the browser did not attach the credential by itself, or nothing is changed."""

    @classmethod
    def around(cls, headers: Mapping[str, str], origin: str) -> "Envelope":
        """Keeps the request id that the client or a proxy has given if it is safe to log, and else makes a new one."""
        given = headers.get("x-request-id", "")
        return cls(headers, origin, given if given and _REQUEST_ID.fullmatch(given) else new_request_id())


def new_request_id() -> str:
    return f"{random.getrandbits(64):016x}"
