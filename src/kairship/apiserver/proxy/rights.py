"""Who may come in through the proxy, and who they are inside.

Whoever has no right on an instance does not learn that it is there. For those who have one, the instance's own RBAC
has the last word, in their name: what somebody granted by hand in there counts too. What bindings grant is known here
as well (`granted`), and only that is answered from the index. Some things nobody gets through the plane, whatever RBAC
inside says.
"""

import msgspec

from kairship import access
from kairship.access import Authoriser, Extent, Verdict, namespaces
from kairship.access.proxy import TO_MEMBERS, Attributes, permission_for
from kairship.apiserver.authorisation import (
    holder,
    needed,
    no_instance,
    outside_token,
    require_password_changed,
    rights_unknown,
)
from kairship.apiserver.inside import person_inside
from kairship.apiserver.proxy.asking import Asked, AskedPath
from kairship.apiserver.proxy.target import Target
from kairship.kube import Impersonation
from kairship.rpc.calls import Caller
from kairship.rpc.errors import ApiError, PermissionDenied

_REMEMBERED = 4096


class Admitted(msgspec.Struct, frozen=True):
    granted: bool
    """By bindings, and not at best by RBAC of the instance's own."""
    identity: Impersonation
    extent: Extent | None = None
    """Of a read: how far RBAC inside grants it, if it is certain to. Only that is answered from the index."""


class ProxyRights:
    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser
        # A decision is a dozen lookups. Whoever asks once asks again, and until rights change the answer is the same.
        self._granted: dict[tuple[access.Caller, str, bool, Attributes], Admitted] = {}
        self._version = authoriser.version

    def admit(self, caller: Caller, target: Target, asked: Asked | AskedPath) -> Admitted:
        """Raises `NotFound`, `PermissionDenied`, or `Unavailable` while rights cannot be trusted to be current."""
        require_password_changed(caller)
        if caller.only_instance and caller.only_instance != target.instance:
            raise no_instance(target.instance)
        who = holder(caller)
        if target.cluster is not None and who.limited_to is not None and TO_MEMBERS not in who.limited_to:
            raise outside_token(TO_MEMBERS)
        if isinstance(asked, AskedPath):
            return self._decide(who, target, asked)
        if self._version != self._authoriser.version or len(self._granted) >= _REMEMBERED:
            self._granted.clear()
            self._version = self._authoriser.version
        key = (who, target.instance, target.cluster is None, asked.attributes)
        known = self._granted.get(key)
        if known is not None and self._authoriser.is_certain:
            return known
        decided = self._decide(who, target, asked)
        if decided.granted:
            self._granted[key] = decided
        return decided

    def _decide(self, who: access.Caller, target: Target, asked: Asked | AskedPath) -> Admitted:
        if isinstance(asked, AskedPath):
            verdict = self._authoriser.of_proxy_path(who, target.instance, asked.verb, asked.path)
        else:
            verdict = self._authoriser.of_proxy(who, target.instance, asked.attributes)
        if verdict is Verdict.HIDDEN:
            raise no_instance(target.instance)
        if verdict is Verdict.UNCERTAIN:
            raise rights_unknown()
        if verdict is Verdict.FORBIDDEN and (refusal := self._closed(who, target, asked)):
            raise refusal
        groups = self._authoriser.groups_on(who, target.instance)
        extent = None
        if verdict and isinstance(asked, Asked) and asked.reads:
            member = target.cluster is not None
            extent = self._authoriser.extent_inside(who, target.instance, asked.attributes, member=member)
        return Admitted(bool(verdict), person_inside(who.user, groups), extent)

    def _closed(self, who: access.Caller, target: Target, asked: Asked | AskedPath) -> ApiError | None:
        """Why RBAC inside is not even asked."""
        need = None if isinstance(asked, AskedPath) else permission_for(asked.attributes)
        if isinstance(asked, AskedPath) or need is None:
            return PermissionDenied("this is not to be had through the plane")
        if who.limited_to is not None and need not in who.limited_to:
            return outside_token(str(need))
        place = asked.attributes.namespace
        guarded = namespaces.is_reserved(place) or (asked.attributes.resource == "secrets" and not place)
        if guarded and not self._authoriser.on_instance(who, namespaces.NEEDED, target.instance):
            return needed(namespaces.NEEDED)
        return None
