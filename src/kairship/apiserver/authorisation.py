"""Who may do what: the verdicts of the gate, told to callers.

Default deny: what nobody allows is refused, and a method that names no permission is nobody's. Everything is decided
from memory, at once.
"""

import hashlib
import hmac
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, Protocol

from protobuf import Message

from kairship import access
from kairship.access import Authoriser, Gate, Verdict
from kairship.access.namespaces import NEEDED
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.resources import Reach
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import ApiError, InvalidArgument, NotFound, PermissionDenied, Unavailable
from kairship.rpc.sight import EVERYTHING, Sight

RETRY_AFTER = 2.0

_SELF = "/kairship.ghippo.v1alpha1."
BEFORE_PASSWORD_CHANGE = frozenset(
    {f"{_SELF}CurrentUser/GetCurrentUser", f"{_SELF}CurrentUser/ChangePassword", f"{_SELF}Sessions/Logout"}
)
"""All that is allowed to somebody who must change the password first."""


class Authorizer(Protocol):
    def authorize(self, call: Call, request: Message[Any]) -> None:
        """Returns if the caller may. Decides from memory, at once.

        Raises `PermissionDenied`; `NotFound` where the caller may not even know that there is something;
        `Unavailable` while rights cannot be trusted to be current. Notes in the call what is in its sight.
        """
        ...

    def objection(self, call: Call, request: Message[Any]) -> Callable[[], ApiError | None]:
        """For a stream: what is asked again and again while it lasts, and says why it must end."""
        ...


class Gatekeeper:
    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser
        self._gate = Gate(authoriser)

    def authorize(self, call: Call, request: Message[Any]) -> None:
        method = call.method
        if method.path not in BEFORE_PASSWORD_CHANGE:
            require_password_changed(call.caller)
        _require_place_named(call, request)
        verdict = self._gate.admits(holder(call.caller), method, request)
        if verdict is not Verdict.ALLOWED:
            raise _refusal(verdict, call, request)
        call.sight = self._sight(call, request)
        call.reach_of = cache(partial(self._authoriser.reach, holder(call.caller)))
        if method.instance:
            instance = getattr(request, method.instance)
            call.groups_inside = self._authoriser.groups_on(holder(call.caller), instance)

    def objection(self, call: Call, request: Message[Any]) -> Callable[[], ApiError | None]:
        """Of a list that is filtered, each part that was in sight must still be: nothing is looked at twice."""
        before = call.sight

        def ask() -> ApiError | None:
            try:
                self.authorize(call, request)
            except ApiError as error:
                return error
            # While there is no contact nothing was heard that could be compared.
            if self._authoriser.trusts(NEEDED) and not call.sight.covers(before):
                return Unavailable("your rights have changed; call again", retry_after=1.0)
            return None

        return ask

    def _sight(self, call: Call, request: Message[Any]) -> Sight:
        """Of a method that is admitted. What is not filtered is in sight as a whole."""
        method, who = call.method, holder(call.caller)
        if method.filtered:
            reserved = self._authoriser.reach(who, NEEDED)
            return Sight(reach=self._authoriser.reach(who, method.permission), reserved=reserved)
        instance = getattr(request, method.instance) if method.instance else ""
        whole = Reach(instances=frozenset({instance}))
        match method.scope:
            case Scope.PLATFORM:
                return EVERYTHING
            case Scope.INSTANCE:
                deeper = self._authoriser.on_instance(who, NEEDED, instance)
                beyond = self._authoriser.on_platform(who, method.permission)
                reach = Reach(everywhere=True) if beyond else whole
                return Sight(reach=reach, reserved=whole if deeper else Reach())
            case Scope.NAMESPACE:  # the gate has looked at this very namespace
                held = frozenset({getattr(request, method.namespace or "")})
                return Sight(reach=Reach(namespaces={instance: held}), reserved=whole)
            case _:
                return Sight()


@lru_cache(maxsize=4096)
def holder(caller: Caller) -> access.Caller:
    """A caller as bindings know it. Remembered, with the groups as a set that decisions are made of."""
    return access.Caller(caller.id, caller.groups, limited_to=caller.limited_to)


def require_password_changed(caller: Caller) -> None:
    if caller.must_change_password:
        raise PermissionDenied("change your password first; nothing else is allowed until then")


def require_for_everything(caller: Caller) -> None:
    """A token out of a kubeconfig opens the native API of its instance only."""
    if caller.only_instance:
        raise PermissionDenied(
            f"this token is for kubectl on instance {caller.only_instance} and opens nothing else; sign in"
        )


def require_permission_named(call: Call) -> None:
    if not call.method.permission:
        raise PermissionDenied("nobody may call this: it names no permission")


def require_same_page(caller: Caller, csrf: str) -> None:
    """That a request with a cookie comes from the page that signed in, and not from another in its name."""
    shown = hashlib.sha256(csrf.encode(errors="replace")).hexdigest()
    if not caller.csrf or not hmac.compare_digest(shown, caller.csrf):
        raise PermissionDenied("the header X-CSRF-Token is missing or not that of this session; sign in again")


def _require_place_named(call: Call, request: Message[Any]) -> None:
    """Over gRPC a request may leave out where it is about, which no place that there could be is called."""
    method = call.method
    places = [field for field in (method.instance, method.namespace, method.workspace) if field]
    if missing := [field for field in places if not getattr(request, field)]:
        raise InvalidArgument(violations=[(field, "must not be empty") for field in missing])


def no_instance(name: str) -> NotFound:
    """The same words whether there is none, or none that the caller may know of."""
    return NotFound(f"there is no instance {name}")


def rights_unknown() -> Unavailable:
    return Unavailable("rights cannot be checked at this moment; nothing was done", retry_after=RETRY_AFTER)


def outside_token(permission: str) -> PermissionDenied:
    return PermissionDenied(f"this access token is not for {permission}; create one that is")


def needed(permission: str) -> PermissionDenied:
    return PermissionDenied(f"{permission} is needed for this; ask an administrator for it")


def _refusal(verdict: Verdict, call: Call, request: Message[Any]) -> ApiError:
    method = call.method
    if verdict is Verdict.UNCERTAIN:
        return rights_unknown()
    if verdict is Verdict.HIDDEN:
        if method.scope is Scope.WORKSPACE:
            return NotFound(f"there is no workspace {getattr(request, method.workspace or '')}")
        return no_instance(getattr(request, method.instance or ""))
    if call.caller.limited_to is not None and method.permission not in call.caller.limited_to:
        return outside_token(method.permission)
    return needed(method.permission)
