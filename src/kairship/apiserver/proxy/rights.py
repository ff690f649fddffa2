"""Who may come in through the proxy, and who they are inside.

Whoever has no right on an instance does not learn that it is there. For those who have one, the instance's own RBAC
has the last word, in their name: what somebody granted by hand in there counts too. What bindings grant is known here
as well (`granted`), and only that is answered from the index. Some things nobody gets through the plane, whatever RBAC
inside says.
"""

import msgspec

from kairship import access
from kairship.access import Authoriser, Verdict, namespaces
from kairship.access.proxy import permission_for
from kairship.apiserver.proxy.asking import Asked, AskedPath
from kairship.apiserver.proxy.target import Target
from kairship.kube import Impersonation
from kairship.resources import SubjectKind
from kairship.resources.access_binding import name_inside
from kairship.rpc.calls import Caller
from kairship.rpc.errors import ApiError, NotFound, PermissionDenied, Unavailable

_DELICATE_PARTS = frozenset({"exec", "attach", "portforward", "log", "proxy"})


class Admitted(msgspec.Struct, frozen=True):
    granted: bool
    """By bindings, and not at best by RBAC of the instance's own."""
    identity: Impersonation


class ProxyRights:
    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    def admit(self, caller: Caller, target: Target, asked: Asked | AskedPath) -> Admitted:
        """Raises `NotFound`, `PermissionDenied`, or `Unavailable` while rights cannot be trusted to be current."""
        if caller.must_change_password:
            raise PermissionDenied("change your password first; nothing else is allowed until then")
        who = access.Caller(caller.id, caller.groups, limited_to=caller.limited_to)
        if isinstance(asked, AskedPath):
            verdict = self._authoriser.of_proxy_path(who, target.instance, asked.verb, asked.path)
        else:
            verdict = self._authoriser.of_proxy(who, target.instance, asked.attributes)
        if verdict is Verdict.HIDDEN:
            raise NotFound(f"there is no instance {target.instance}")
        if verdict is Verdict.UNCERTAIN:
            raise Unavailable("rights cannot be checked at this moment; nothing was done", retry_after=2.0)
        if verdict is Verdict.FORBIDDEN and (refusal := self._closed(who, target, asked)):
            raise refusal
        return Admitted(verdict is Verdict.ALLOWED, self._identity(who, target.instance))

    def _closed(self, who: access.Caller, target: Target, asked: Asked | AskedPath) -> ApiError | None:
        """Why RBAC inside is not even asked."""
        need = None if isinstance(asked, AskedPath) else permission_for(asked.attributes)
        if isinstance(asked, AskedPath) or need is None:
            return PermissionDenied("this is not to be had through the plane")
        if who.limited_to is not None and need not in who.limited_to:
            return PermissionDenied(f"this access token is not for {need}; create one that is")
        place = asked.attributes.namespace
        guarded = namespaces.is_reserved(place) or (asked.attributes.resource == "secrets" and not place)
        if guarded and not self._authoriser.on_instance(who, namespaces.NEEDED, target.instance):
            return PermissionDenied(f"{namespaces.NEEDED} is needed for this; ask an administrator for it")
        return None

    def _identity(self, who: access.Caller, instance: str) -> Impersonation:
        groups = self._authoriser.groups_on(who, instance)
        return Impersonation(
            user=name_inside(SubjectKind.USER, who.user),
            groups=[name_inside(SubjectKind.GROUP, group) for group in groups],
        )


def is_delicate(asked: Asked | AskedPath) -> bool:
    """Whether it is not done while rights may be out of date: writes, terminals, logs and Secrets."""
    if isinstance(asked, AskedPath):
        return False
    about = asked.attributes
    reads = about.verb in {"get", "list", "watch"}
    return not reads or about.resource == "secrets" or about.subresource in _DELICATE_PARTS
