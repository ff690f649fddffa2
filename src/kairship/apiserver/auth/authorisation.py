"""Authorisation of API calls: whether a caller may call a method with a request, and the error if not.

`MethodAuthoriser` applies the options that a method has in its proto (scope, permission, the fields that name the
instance, namespace or workspace); `kairship.access.Authoriser` decides. Access is denied by default: what no binding
grants is refused, and a method that names no permission is closed to every caller. Every decision is made from memory,
without waiting.
"""

import hashlib
import hmac
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, Protocol

from protobuf import Message

from kairship import access
from kairship.access import Authoriser, Decision, Role, permissions
from kairship.access.catalogue.system_namespaces import SYSTEM_NAMESPACES_PERMISSION, is_reserved
from kairship.apiserver.auth.revocation import RevocationCheck
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.resources import Coverage
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import ApiError, InvalidArgument, NotFound, PermissionDenied, Unavailable
from kairship.rpc.sight import EVERYTHING, Sight
from kairship.wire import Method

RETRY_AFTER = 2.0

_SELF = "/kairship.ghippo.v1alpha1."
BEFORE_PASSWORD_CHANGE = frozenset(
    {f"{_SELF}CurrentUser/GetCurrentUser", f"{_SELF}CurrentUser/ChangePassword", f"{_SELF}Sessions/Logout"}
)
"""The only methods that a caller may call who must change the password first."""
_BOUND_ON = {Scope.NAMESPACE: "namespace", Scope.INSTANCE: "instance", Scope.WORKSPACE: "workspace"}


class CallAuthoriser(Protocol):
    """Decides for the chain whether a call may be served."""

    def authorise(self, call: Call, request: Message[Any]) -> None:
        """Returns if the caller may call the method with this request, without waiting.

        Sets the call's sight: what the reply may be about. Raises `PermissionDenied`; `NotFound` where the caller may
        not even know that the object exists; `Unavailable` while rights or identities may be out of date.
        """
        ...

    def objection(self, call: Call, request: Message[Any]) -> Callable[[], ApiError | None]:
        """Returns a check for an open stream. It is called repeatedly, and returns why the stream must end, or None."""
        ...


class MethodAuthoriser:
    def __init__(self, authoriser: Authoriser, revocation: RevocationCheck) -> None:
        self._authoriser = authoriser
        self._revocation = revocation

    def authorise(self, call: Call, request: Message[Any]) -> None:
        caller, method = call.caller, call.method
        if caller.id and (stale := self._revocation.staleness(delicate=_is_delicate(method))):
            raise stale
        if method.path not in BEFORE_PASSWORD_CHANGE:
            require_password_changed(caller)
        _require_scope_named(method, request)
        verdict = self._decide(holder(caller), method, request)
        if verdict is not Decision.ALLOWED:
            raise _refusal(verdict, call, request)
        call.sight = self._sight(call, request)
        call.coverage_of = cache(partial(self._authoriser.coverage, holder(caller)))
        if method.instance:
            instance = getattr(request, method.instance)
            call.groups_inside = self._authoriser.groups_on(holder(caller), instance)

    def objection(self, call: Call, request: Message[Any]) -> Callable[[], ApiError | None]:
        """The stream of a filtered list ends when anything leaves its sight: what was sent is not looked at again."""
        before, caller, delicate = call.sight, call.caller, _is_delicate(call.method)

        def check() -> ApiError | None:
            if caller.id and (objection := self._revocation.objection_to(caller, delicate=delicate)):
                return objection
            try:
                self.authorise(call, request)
            except ApiError as error:
                return error
            # Without contact to the global cluster the sight is empty, which is no reason to end the stream.
            if self._authoriser.is_current_for(SYSTEM_NAMESPACES_PERMISSION) and not call.sight.covers(before):
                return Unavailable("your rights have changed; call again", retry_after=1.0)
            return None

        return check

    def _decide(self, caller: access.Caller, method: Method, request: Message[Any]) -> Decision:
        if method.scope is Scope.ANYBODY:
            return Decision.ALLOWED
        if not caller.user:
            return Decision.FORBIDDEN
        rights, permission = self._authoriser, method.permission
        match method.scope:
            case Scope.SELF:
                return rights.on_self(caller, permission)
            case Scope.PLATFORM if method.filtered:
                return rights.on_filtered_list(caller, permission)
            case Scope.PLATFORM:
                return rights.on_platform(caller, permission)
            case Scope.WORKSPACE:
                return rights.on_workspace(caller, permission, _value(request, method.workspace))
            case Scope.INSTANCE if method.filtered:
                return rights.on_part_of_instance(caller, permission, _value(request, method.instance))
            case Scope.INSTANCE:
                return rights.on_instance(caller, permission, _value(request, method.instance))
            case Scope.NAMESPACE:
                instance, namespace = _value(request, method.instance), _value(request, method.namespace)
                # An empty namespace does not mean all namespaces here.
                return rights.on_instance(caller, permission, instance, namespace) if namespace else Decision.HIDDEN
            case _:
                return Decision.FORBIDDEN

    def _sight(self, call: Call, request: Message[Any]) -> Sight:
        """Returns what the reply to an admitted call may be about. Without a filter, that is the whole scope."""
        method, caller = call.method, holder(call.caller)
        if method.filtered:
            reserved = self._authoriser.coverage(caller, SYSTEM_NAMESPACES_PERMISSION)
            return Sight(coverage=self._authoriser.coverage(caller, method.permission), reserved=reserved)
        instance = getattr(request, method.instance) if method.instance else ""
        whole = Coverage(instances=frozenset({instance}))
        match method.scope:
            case Scope.PLATFORM:
                return EVERYTHING
            case Scope.INSTANCE:
                in_system_namespaces = self._authoriser.on_instance(caller, SYSTEM_NAMESPACES_PERMISSION, instance)
                on_platform = self._authoriser.on_platform(caller, method.permission)
                reach = Coverage(everywhere=True) if on_platform else whole
                return Sight(coverage=reach, reserved=whole if in_system_namespaces else Coverage())
            case Scope.NAMESPACE:  # `_decide` has checked this very namespace
                held = frozenset({getattr(request, method.namespace or "")})
                return Sight(coverage=Coverage(namespaces={instance: held}), reserved=whole)
            case _:
                return Sight()


@lru_cache(maxsize=4096)
def holder(caller: Caller) -> access.Caller:
    """Returns the caller in the form in which bindings know it. Cached, because it holds the groups as a set."""
    return access.Caller(caller.id, caller.groups, limited_to=caller.limited_to)


def require_password_changed(caller: Caller) -> None:
    if caller.must_change_password:
        raise PermissionDenied("change your password first; nothing else is allowed until then")


def require_whole_api_token(caller: Caller) -> None:
    """Refuses the token of a kubeconfig, which is valid for the native API of its instance only."""
    if caller.only_instance:
        raise PermissionDenied(
            f"this token is for kubectl on instance {caller.only_instance} and opens nothing else; sign in"
        )


def require_permission_named(call: Call) -> None:
    if not call.method.permission:
        raise PermissionDenied("this method is closed to every caller, because it names no permission")


def require_same_page(caller: Caller, csrf: str) -> None:
    """Checks the CSRF token of a request whose credential was a cookie: the page that signed in must have sent it."""
    shown = hashlib.sha256(csrf.encode(errors="replace")).hexdigest()
    if not caller.csrf or not hmac.compare_digest(shown, caller.csrf):
        raise PermissionDenied("the header X-CSRF-Token is missing or not that of this session; sign in again")


def _require_scope_named(method: Method, request: Message[Any]) -> None:
    """Refuses a request that does not name its instance, namespace or workspace, which is possible over gRPC."""
    fields = [field for field in (method.instance, method.namespace, method.workspace) if field]
    if missing := [field for field in fields if not getattr(request, field)]:
        raise InvalidArgument(violations=[(field, "must not be empty") for field in missing])


def no_instance(name: str) -> NotFound:
    """The text is the same whether the instance does not exist or the caller may not know of it."""
    return NotFound(f"there is no instance {name}")


def rights_unknown() -> Unavailable:
    return Unavailable("rights cannot be checked at this moment; nothing was done", retry_after=RETRY_AFTER)


def outside_token(permission: str, *, wanted: str = "this") -> PermissionDenied:
    return PermissionDenied(
        f"this access token is not for {permission}, which is needed for {wanted}; create one that is"
    )


def needed(permission: str, *, place: str = "", wanted: str = "this") -> PermissionDenied:
    """`place` is what the role would have to be bound on: namespace, instance or workspace."""
    defined = permissions().get(permission)
    if defined is None or defined.role is None:
        return PermissionDenied(f"{permission} is needed for {wanted}; ask an administrator for it")
    if defined.role is Role.PLATFORM_ADMIN:
        where = ""
    else:
        where = " on the instance" if defined.on_instance else f" on the {place}" if place else ""
    return PermissionDenied(
        f"{permission} is needed for {wanted}: the role {defined.role.title}{where} has it; ask an administrator for it"
    )


def _refusal(verdict: Decision, call: Call, request: Message[Any]) -> ApiError:
    method = call.method
    if verdict is Decision.UNCERTAIN:
        return rights_unknown()
    if verdict is Decision.HIDDEN:
        if method.scope is Scope.WORKSPACE:
            return NotFound(f"there is no workspace {getattr(request, method.workspace or '')}")
        return no_instance(getattr(request, method.instance or ""))
    if call.caller.limited_to is not None and method.permission not in call.caller.limited_to:
        return outside_token(method.permission)
    if method.scope is Scope.NAMESPACE and is_reserved(_value(request, method.namespace)):
        return needed(SYSTEM_NAMESPACES_PERMISSION, place="instance")
    return needed(method.permission, place=_BOUND_ON.get(method.scope, ""))


def _is_delicate(method: Method) -> bool:
    permission = permissions().get(method.permission)
    return permission is None or permission.delicate


def _value(request: Message[Any], field: str | None) -> str:
    return str(getattr(request, field)) if field else ""
