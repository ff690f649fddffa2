"""What an authoriser answers."""

import enum

import msgspec

from kairship.access.bindings import Binding
from kairship.access.roles import Role


class Verdict(enum.Enum):
    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    """The caller may know of the place, but not do this: 403."""
    HIDDEN = "hidden"
    """The caller has no right there at all, or there is no such place: 404 for both alike."""
    UNCERTAIN = "uncertain"
    """Bindings may be out of date, and this is not done on an old word: 503, come back soon."""

    def __bool__(self) -> bool:
        return self is Verdict.ALLOWED


class Extent(enum.Enum):
    """How far a right reaches that RBAC inside an instance has written down."""

    WHOLE = "the whole instance"
    NAMESPACE = "one namespace"


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a verdict is what it is: what allows it, or what would."""

    verdict: Verdict
    permission: str
    bindings: tuple[Binding, ...] = ()
    """Which bindings allow it."""
    role: Role | None = None
    """The least built-in role that would; None if there is no such permission."""
    outside_token: bool = False
    """Whether it is the token that is not for this, and not a lack of rights."""
