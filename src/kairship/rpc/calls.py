"""One request being served, whatever it came by: REST, gRPC or the proxy.

Services receive a `Call` beside each request: who asks, under which id the logs know it, and how long there is.
"""

import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

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
    """How it was shown who it is: "token", later also "session" and others."""


@dataclass(slots=True, kw_only=True)
class Call:
    request_id: str
    caller: Caller
    method: Method
    deadline: float
    """When the reply must be there, by `time.monotonic`."""
    origin: str = ""
    """The address that the request came from."""
    warnings: list[str] = field(default_factory=list)

    def remaining(self) -> float:
        """Seconds until the deadline, never negative: the timeout of a call that this one makes."""
        return max(0.0, self.deadline - time.monotonic())

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

    @classmethod
    def around(cls, headers: Mapping[str, str], origin: str) -> "Envelope":
        """Its id is the one that the caller or a proxy has given, if it can be written everywhere, or a new one."""
        given = headers.get("x-request-id", "")
        return cls(headers, origin, given if _REQUEST_ID.fullmatch(given) else new_request_id())


def new_request_id() -> str:
    return f"{random.getrandbits(64):016x}"
