"""The answers of the authoriser."""

import enum

import msgspec

from kairship.access.bindings import Binding
from kairship.access.catalogue.roles import Role


class Decision(enum.Enum):
    """Whether a caller may do something. Only `ALLOWED` is true."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    """The caller may know of the scope, but may not do this there: 403."""
    HIDDEN = "hidden"
    """The caller has no right at all on the scope, or the scope does not exist: 404 in both cases."""
    UNCERTAIN = "uncertain"
    """Bindings may be out of date, and the permission is too delicate to decide on old ones: 503, to be retried."""

    def __bool__(self) -> bool:
        return self is Decision.ALLOWED


class RbacScope(enum.Enum):
    """Where the RBAC inside an instance grants what bindings grant: by a ClusterRoleBinding or by a RoleBinding."""

    INSTANCE = "the whole instance"
    NAMESPACE = "one namespace"


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The reasons of a decision: the bindings that allow it, or the role that would."""

    decision: Decision
    permission: str
    bindings: tuple[Binding, ...] = ()
    """The bindings that allow it."""
    role: Role | None = None
    """The least built-in role that has the permission; None if there is no such permission."""
    outside_token: bool = False
    """Whether the access token is limited to other permissions, whatever rights its owner has."""
